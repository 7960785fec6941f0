package placing;

import java.io.Serializable;

/**
 * How fast one task may read: so many bytes a second from its first record on, as from storage far away.
 *
 * Law: a task is never ahead of its rate by more than the record in hand and AHEAD_MS. It computes nothing
 * meanwhile, so that more tasks read faster although there are few processors.
 */
final class SteadyRate implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final long AHEAD_MS = 50;

    private final long bytesPerSecond;
    private long beganNs;
    private long bytes;

    SteadyRate(long kibPerSecond) {
        bytesPerSecond = kibPerSecond * 1024;
    }

    /** Waits until a line may have been read; characters are ASCII, the line's end is one more. */
    void took(int characters) throws InterruptedException {
        if (bytes == 0) {
            beganNs = System.nanoTime();
        }
        bytes += characters + 1;
        long aheadMs = bytes * 1000 / bytesPerSecond - (System.nanoTime() - beganNs) / 1_000_000;
        if (aheadMs > AHEAD_MS) {
            Thread.sleep(aheadMs);
        }
    }
}

package counting;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.UUID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;

/**
 * {@code Count NUMBERS MS OUT TAKEN}: each number below NUMBERS takes MS, and is written with its key (its last
 * decimal digit) and how many of that key there were so far. Each task leaves a file in the folder TAKEN of its
 * machine with how many numbers it took: those that were taken again after a rescale are in two of them.
 *
 * Law: what is written is exact only if every number was counted once; a line is KEY, COUNT, NUMBER.
 */
public final class Count {
    private Count() {}

    public static void main(String[] given) throws Exception {
        long numbers = Long.parseLong(given[0]);
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
        environment
                .fromSource(new NumberSequenceSource(0, numbers - 1), WatermarkStrategy.noWatermarks(), "numbers")
                .uid("numbers")
                .map(new Slow(Long.parseLong(given[1]), given[3]))
                .uid("slow")
                .keyBy(number -> number % 10)
                .map(new Counted())
                .uid("counted")
                .sinkTo(FileSink.forRowFormat(new Path(given[2]), new SimpleStringEncoder<String>())
                        .withBucketAssigner(new BasePathBucketAssigner<>())
                        .build())
                .uid("written");
        environment.execute("count");
    }

    /** Takes its time over each number. */
    private static final class Slow extends RichMapFunction<Long, Long> {
        private static final long serialVersionUID = 1L;
        private final long milliseconds;
        private final String folder;
        private transient long taken;

        Slow(long milliseconds, String folder) {
            this.milliseconds = milliseconds;
            this.folder = folder;
        }

        @Override
        public Long map(Long number) throws InterruptedException {
            Thread.sleep(milliseconds);
            taken++;
            return number;
        }

        @Override
        public void close() throws IOException {
            Files.writeString(Paths.get(folder, UUID.randomUUID().toString()), Long.toString(taken));
        }
    }

    /** Counts the numbers of each key. */
    private static final class Counted extends RichMapFunction<Long, String> {
        private static final long serialVersionUID = 1L;
        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Long.class));
        }

        @Override
        public String map(Long number) throws Exception {
            Long before = count.value();
            long now = before == null ? 1 : before + 1;
            count.update(now);
            return number % 10 + " " + now + " " + number;
        }
    }
}

package yarnctl;

import com.codahale.metrics.Gauge;
import com.codahale.metrics.MetricRegistry;
import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.spark.ExecutorAllocationClient;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.scheduler.ExecutorDecommissionInfo;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.status.api.v1.ExecutorSummary;
import scala.Option;
import scala.Tuple2;
import scala.collection.JavaConverters;

/**
 * A driver's plugin: executors leave, and come back, as numbered orders in HDFS say.
 *
 * <p>Law: an order is obeyed once, in the order of the numbers, and only if nobody but the daemon's account can
 * have written it. Of two orders with one number only the first is obeyed, and none with a number below the last:
 * a daemon that was frozen while it wrote an order must not be obeyed after the next one has written its own. Whatever goes wrong here must not harm the application: it is left alone then. The orders of
 * one driver lie in a folder of its own, named after the instant of its start, so that no later attempt reads
 * them: ROOT/APPLICATION/driver-START/000000001-KIND-DECISION.order, with one line: "leave 3 4" or "back DECISION".
 *
 * <p>Executors of the kind "idle" were chosen because they had no task. Spark removes those that still have none; the
 * others stay, and their number is not lowered by them. All others end their tasks first.
 *
 * <p>Executors of Structured Streaming leave between two micro-batches: an order waits for the end of the running one,
 * at most ``GAP``.
 *
 * <p>Answer: two gauges among the driver's metrics (/metrics/json): the number of the last order that is done with,
 * and how many executors work and were not asked to leave.
 */
public final class Leave implements SparkPlugin {
  static final String ROOT = "spark.yarnctl.requests";
  static final String OWNER = "spark.yarnctl.requests.owner";
  static final String EVERY = "spark.yarnctl.every";
  static final String GAP = "spark.yarnctl.gap";
  static final String GAP_OF_YARNCTL = "5s";
  static final String START = "spark.app.startTime";
  static final String INSTANCES = "spark.executor.instances";
  static final String DYNAMIC = "spark.dynamicAllocation.enabled";
  static final String DYNAMIC_MIN = "spark.dynamicAllocation.minExecutors";
  static final int INSTANCES_OF_SPARK = 2;
  static final int BYTES_MAX = 65536;
  static final int NUMBER_DIGITS = 9;
  static final String IDLE = "idle";

  @Override
  public DriverPlugin driverPlugin() {
    return new Driver();
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return null;
  }

  /** Starts, and ends, the thread that reads orders. */
  static final class Driver implements DriverPlugin {
    private Thread reader;
    Orders orders;

    @Override
    public Map<String, String> init(SparkContext context, PluginContext plugin) {
      String root = context.getConf().get(ROOT, "");
      if ("yarn".equals(context.master()) && !root.isEmpty()) {
        try {
          orders = new Orders(context, root);
        } catch (RuntimeException odd) {
          // A setting that only Spark understands must not end the driver: no order is read then.
          return Collections.emptyMap();
        }
        listen(context);
        reader = new Thread(orders, "yarnctl-leave");
        reader.setDaemon(true);
        reader.start();
      }
      return Collections.emptyMap();
    }

    private void listen(SparkContext context) {
      try {
        context.addSparkListener(orders.batches);
      } catch (RuntimeException | LinkageError another) {
        // Another Spark has other methods: an order waits for no micro-batch then.
      }
    }

    @Override
    public void registerMetrics(String application, PluginContext plugin) {
      if (orders != null) {
        MetricRegistry metrics = plugin.metricRegistry();
        metrics.register("order", (Gauge<Integer>) () -> orders.last);
        metrics.register("executors", (Gauge<Integer>) orders::working);
      }
    }

    @Override
    public void shutdown() {
      if (reader != null) {
        reader.interrupt();
      }
    }
  }

  /** The running jobs of micro-batches, by the property that Spark gives to their jobs (MicroBatchExecution). */
  static final class MicroBatches extends SparkListener {
    static final String BATCH = "streaming.sql.batchId";
    private final Set<Integer> running = new HashSet<>();

    @Override
    public synchronized void onJobStart(SparkListenerJobStart job) {
      if (job.properties() != null && job.properties().getProperty(BATCH) != null) {
        running.add(job.jobId());
      }
    }

    @Override
    public synchronized void onJobEnd(SparkListenerJobEnd job) {
      running.remove(job.jobId());
      notifyAll();
    }

    /** Waits until none runs, at most so many ms. */
    synchronized void awaitGap(long mostMs) throws InterruptedException {
      long began = System.nanoTime();
      for (long leftMs = mostMs; leftMs > 0 && !running.isEmpty(); ) {
        wait(leftMs);
        leftMs = mostMs - (System.nanoTime() - began) / 1_000_000;
      }
    }
  }

  /** Reads orders until the driver ends. */
  static final class Orders implements Runnable {
    private final SparkContext context;
    private final Path root;
    private Path folder;
    private final String owner;
    private final long everyMs;
    private final long gapMs;
    final MicroBatches batches = new MicroBatches();
    private final Map<String, Integer> gone = new HashMap<>();
    private volatile int last;
    private int wanted;

    Orders(SparkContext context, String root) {
      this.context = context;
      this.root = new Path(root);
      this.owner = context.getConf().get(OWNER, "yarnctl");
      this.everyMs = context.getConf().getTimeAsMs(EVERY, "1s");
      this.gapMs = context.getConf().getTimeAsMs(GAP, GAP_OF_YARNCTL);
      this.wanted = context.getConf().getInt(INSTANCES, INSTANCES_OF_SPARK);
    }

    @Override
    public void run() {
      while (!Thread.currentThread().isInterrupted()) {
        try {
          look();
          Thread.sleep(everyMs);
        } catch (InterruptedException end) {
          return;
        } catch (Exception | LinkageError fault) {
          // Seen again with the next look, or never: the application goes on either way.
          if (!pause()) {
            return;
          }
        }
      }
    }

    /** A plugin is made before its application has an id: nothing is read until then. */
    private boolean isKnown() {
      if (folder == null && context.applicationId() != null) {
        String start = context.getConf().get(START, "0");
        folder = new Path(root, context.applicationId() + "/driver-" + start);
      }
      return folder != null;
    }

    private boolean pause() {
      try {
        Thread.sleep(10 * everyMs);
        return true;
      } catch (InterruptedException end) {
        return false;
      }
    }

    /** Reads the orders that have come, and obeys each once. */
    void look() throws IOException, InterruptedException {
      if (!isKnown()) {
        return;
      }
      FileSystem files = folder.getFileSystem(context.hadoopConfiguration());
      FileStatus[] found;
      try {
        found = files.listStatus(folder, path -> path.getName().matches("[0-9]{9}-[A-Za-z0-9._-]+\\.order"));
      } catch (FileNotFoundException none) {
        return;
      }
      Arrays.sort(found, (one, other) -> one.getPath().getName().compareTo(other.getPath().getName()));
      for (FileStatus each : found) {
        String name = each.getPath().getName();
        int number = Integer.parseInt(name.substring(0, NUMBER_DIGITS));
        if (number > last) {
          // Read before it counts as seen: an order that HDFS did not give is read again with the next look.
          String order = isOurs(files, each) ? text(files, each) : "";
          if (!obey(number, name, order)) {
            return;
          }
          last = number;
        }
      }
    }

    /** Whether only the daemon's account can have written this file, and what lies above it. */
    private boolean isOurs(FileSystem files, FileStatus order) throws IOException {
      for (Path path = folder; path != null && path.depth() >= root.depth(); path = path.getParent()) {
        if (!closed(files.getFileStatus(path))) {
          return false;
        }
      }
      return closed(order) && order.getLen() <= BYTES_MAX;
    }

    private boolean closed(FileStatus status) {
      return owner.equals(status.getOwner())
          && !status.getPermission().getGroupAction().implies(FsAction.WRITE)
          && !status.getPermission().getOtherAction().implies(FsAction.WRITE);
    }

    private static String text(FileSystem files, FileStatus order) throws IOException {
      byte[] held = new byte[(int) order.getLen()];
      try (InputStream in = files.open(order.getPath())) {
        int read = 0;
        while (read < held.length) {
          int more = in.read(held, read, held.length - read);
          if (more < 0) {
            throw new EOFException(order.getPath() + " ends after " + read + " of " + held.length + " bytes");
          }
          read += more;
        }
        return new String(held, StandardCharsets.US_ASCII).trim();
      }
    }

    /** The parts of NUMBER-KIND-DECISION.order; a decision may have hyphens of its own, and be missing. */
    private static String[] partsOf(String name) {
      String[] parts = name.substring(0, name.length() - ".order".length()).split("-", 3);
      return parts.length == 3 ? parts : new String[] {parts[0], parts[1], ""};
    }

    /** Whether the order is done with; false: it is read again with the next look. */
    private boolean obey(int number, String name, String order) throws InterruptedException {
      if (order.matches("leave( [0-9]{1,9})+")) {
        last = number; // an executor is asked once, whatever comes of it
        batches.awaitGap(gapMs);
        String[] parts = partsOf(name);
        leave(parts[2], order.substring("leave ".length()).split(" "), parts[1].equals(IDLE));
      } else if (order.matches("back( [A-Za-z0-9._-]{1,80})+")) {
        return back(order.substring("back ".length()).split(" "));
      }
      return true;
    }

    /** Asks again for as many executors as left by these decisions and are not back: nothing twice. */
    private boolean back(String[] decisions) {
      int more = 0;
      for (String decision : decisions) {
        more += gone.getOrDefault(decision, 0);
      }
      if (more > 0 && !ask(more)) {
        return false;
      }
      gone.keySet().removeAll(Arrays.asList(decisions));
      return true;
    }

    /**
     * Asks for so many executors more than are wanted. Where their number is fixed Spark's own count of those
     * it wants is 0 after the first has left, so that the whole number is said; it begins with the number that
     * was submitted, for not all may be there yet. Else Spark's manager keeps the count.
     */
    private boolean ask(int more) {
      if (isDynamic()) {
        return more == 0 || context.requestExecutors(more);
      }
      wanted += more;
      boolean taken =
          context.requestTotalExecutors(wanted, 0, scala.collection.immutable.Map$.MODULE$.<String, Object>empty());
      wanted -= taken ? 0 : more;
      return taken;
    }

    private boolean isDynamic() {
      return context.getConf().getBoolean(DYNAMIC, false);
    }

    /** The executors that work and were not asked to leave. */
    private int working() {
      ExecutorAllocationClient client = (ExecutorAllocationClient) context.schedulerBackend();
      int found = 0;
      scala.collection.Iterator<String> each = client.getExecutorIds().iterator();
      while (each.hasNext()) {
        found += client.isExecutorActive(each.next()) ? 1 : 0;
      }
      return found;
    }

    /**
     * Removes those that have no task and no cached block, where a shuffle service serves what they wrote, and notes
     * them in ``removed``. Spark skips one that has got a task meanwhile. With dynamic allocation as many stay as its minimum:
     * Spark would ask for more at once; and its target is its own, so that it is not adjusted.
     */
    private void removeIdle(List<String> executors, Set<String> removed) {
      if (!context.getConf().getBoolean("spark.shuffle.service.enabled", false)) {
        return;
      }
      int most = isDynamic() ? working() - context.getConf().getInt(DYNAMIC_MIN, 0) : executors.size();
      List<String> idle = new ArrayList<>();
      scala.collection.Iterator<ExecutorSummary> each = context.statusStore().executorList(true).iterator();
      while (each.hasNext() && idle.size() < most) {
        ExecutorSummary one = each.next();
        if (executors.contains(one.id()) && one.activeTasks() == 0 && one.rddBlocks() == 0) {
          idle.add(one.id());
        }
      }
      if (!idle.isEmpty()) {
        ExecutorAllocationClient client = (ExecutorAllocationClient) context.schedulerBackend();
        scala.collection.Iterator<String> names =
            client.killExecutors(JavaConverters.asScalaBuffer(idle).toSeq(), !isDynamic(), false, false).iterator();
        while (names.hasNext()) {
          removed.add(names.next());
        }
      }
    }

    @SuppressWarnings("unchecked")
    private void leave(String decision, String[] executors, boolean onlyIdle) {
      Set<String> removed = new HashSet<>();
      try {
        removeIdle(Arrays.asList(executors), removed);
      } catch (RuntimeException | LinkageError another) {
        // Another Spark has other methods: executors leave with their blocks then, idle or not, or stay if only idle
        // ones are to leave.
      }
      String[] others =
          Arrays.stream(executors).filter(id -> !onlyIdle && !removed.contains(id)).toArray(String[]::new);
      Tuple2<String, ExecutorDecommissionInfo>[] named = new Tuple2[others.length];
      for (int place = 0; place < others.length; place++) {
        ExecutorDecommissionInfo why = new ExecutorDecommissionInfo("yarnctl", Option.empty());
        named[place] = new Tuple2<>(others[place], why);
      }
      ExecutorAllocationClient client = (ExecutorAllocationClient) context.schedulerBackend();
      wanted = Math.max(wanted, working());
      int left = isDynamic() ? 0 : removed.size(); // its manager asks again by itself when tasks come
      left += named.length == 0 ? 0 : client.decommissionExecutors(named, true, false).size();
      gone.merge(decision, left, Integer::sum);
      wanted -= left;
      ask(0);
    }
  }
}

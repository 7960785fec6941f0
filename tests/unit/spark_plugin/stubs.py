"""As much of Hadoop's and Spark's classes as the driver's plugin calls, with faults that a test plans.

Law: signatures are those of Hadoop 3.4 and Spark 4.0; bodies are a file system in memory and a driver that
counts executors. ``Faults.next(CALL)`` fails a call as often as the program's arguments say.
"""

from __future__ import annotations

SOURCES = {
    "yarnctl/Faults.java": """package yarnctl;
public final class Faults {
  static final java.util.Map<String, Integer> left = new java.util.HashMap<>();
  public static void plan(String call, int times) { left.put(call, times); }
  public static boolean next(String call) {
    int more = left.getOrDefault(call, 0);
    left.put(call, Math.max(0, more - 1));
    return more > 0;
  }
  public static void io(String call) throws java.io.IOException {
    if (next(call)) throw new java.io.IOException(call);
  }
}""",
    "org/apache/hadoop/conf/Configuration.java": (
        "package org.apache.hadoop.conf;\npublic class Configuration {}"
    ),
    "org/apache/hadoop/fs/Path.java": """package org.apache.hadoop.fs;
public class Path {
  final String text;
  public Path(String text) { this.text = text; }
  public Path(Path above, String name) { text = above.text + "/" + name; }
  public String getName() { return text.substring(text.lastIndexOf('/') + 1); }
  public int depth() { return text.split("/").length - 1; }
  public Path getParent() {
    int end = text.lastIndexOf('/');
    return end <= 0 ? null : new Path(text.substring(0, end));
  }
  public FileSystem getFileSystem(org.apache.hadoop.conf.Configuration c) { return FileSystem.ONE; }
}""",
    "org/apache/hadoop/fs/PathFilter.java": (
        "package org.apache.hadoop.fs;\npublic interface PathFilter { boolean accept(Path path); }"
    ),
    "org/apache/hadoop/fs/permission/FsAction.java": """package org.apache.hadoop.fs.permission;
public enum FsAction { READ, WRITE;
  public boolean implies(FsAction other) { return this == other; } }""",
    "org/apache/hadoop/fs/permission/FsPermission.java": """package org.apache.hadoop.fs.permission;
public class FsPermission {
  public FsAction getGroupAction() { return FsAction.READ; }
  public FsAction getOtherAction() { return FsAction.READ; } }""",
    "org/apache/hadoop/fs/FileStatus.java": """package org.apache.hadoop.fs;
public class FileStatus {
  final Path path; final int bytes;
  FileStatus(Path path, int bytes) { this.path = path; this.bytes = bytes; }
  public Path getPath() { return path; }
  public long getLen() { return bytes; }
  public String getOwner() { return "yarnctl"; }
  public org.apache.hadoop.fs.permission.FsPermission getPermission() {
    return new org.apache.hadoop.fs.permission.FsPermission(); } }""",
    "org/apache/hadoop/fs/FSDataInputStream.java": """package org.apache.hadoop.fs;
public class FSDataInputStream extends java.io.ByteArrayInputStream {
  FSDataInputStream(byte[] held) { super(held); }
  @Override public int read(byte[] to, int from, int most) {
    if (yarnctl.Faults.next("read")) throw new java.io.UncheckedIOException(new java.io.IOException("read"));
    return super.read(to, from, most); } }""",
    "org/apache/hadoop/fs/FileSystem.java": """package org.apache.hadoop.fs;
public class FileSystem {
  public static final FileSystem ONE = new FileSystem();
  public final java.util.TreeMap<String, byte[]> files = new java.util.TreeMap<>();
  public FileStatus[] listStatus(Path folder, PathFilter filter) throws java.io.IOException {
    yarnctl.Faults.io("list");
    return files.keySet().stream().map(name -> new Path(folder, name)).filter(filter::accept)
        .map(path -> new FileStatus(path, files.get(path.getName()).length)).toArray(FileStatus[]::new); }
  public FileStatus getFileStatus(Path path) throws java.io.IOException {
    yarnctl.Faults.io("status"); return new FileStatus(path, 0); }
  public FSDataInputStream open(Path path) throws java.io.IOException {
    yarnctl.Faults.io("open"); return new FSDataInputStream(files.get(path.getName())); } }""",
    "scala/Option.java": "package scala;\npublic class Option<T> {\n"
    "  public static <T> Option<T> empty() { return new Option<T>(); } }",
    "scala/Tuple2.java": "package scala;\npublic class Tuple2<A, B> {\n"
    "  public final A one; public Tuple2(A one, B other) { this.one = one; } }",
    "scala/collection/Iterator.java": "package scala.collection;\npublic interface Iterator<T> {\n"
    "  boolean hasNext(); T next(); }",
    "scala/collection/Seq.java": """package scala.collection;
public class Seq<T> { final java.util.List<T> held;
  public Seq(java.util.List<T> held) { this.held = held; }
  public int size() { return held.size(); }
  public Iterator<T> iterator() { java.util.Iterator<T> each = held.iterator();
    return new Iterator<T>() { public boolean hasNext() { return each.hasNext(); }
      public T next() { return each.next(); } }; } }""",
    "scala/collection/immutable/Map.java": ("package scala.collection.immutable;\npublic class Map<A, B> {}"),
    "scala/collection/immutable/Map$.java": """package scala.collection.immutable;
public class Map$ { public static final Map$ MODULE$ = new Map$();
  public <A, B> Map<A, B> empty() { return new Map<A, B>(); } }""",
    "org/apache/spark/SparkConf.java": """package org.apache.spark;
public class SparkConf { public final java.util.Map<String, String> held = new java.util.HashMap<>();
  public String get(String key, String other) { return held.getOrDefault(key, other); }
  public int getInt(String key, int other) { return Integer.parseInt(get(key, "" + other)); }
  public boolean getBoolean(String key, boolean other) { return Boolean.parseBoolean(get(key, "" + other)); }
  public long getTimeAsMs(String key, String other) { return Long.parseLong(get(key, "1")); } }""",
    "org/apache/spark/scheduler/SparkListenerJobStart.java": """package org.apache.spark.scheduler;
public class SparkListenerJobStart { final int job; final java.util.Properties properties;
  public SparkListenerJobStart(int job, java.util.Properties properties) {
    this.job = job; this.properties = properties; }
  public int jobId() { return job; }
  public java.util.Properties properties() { return properties; } }""",
    "org/apache/spark/scheduler/SparkListenerJobEnd.java": """package org.apache.spark.scheduler;
public class SparkListenerJobEnd { final int job;
  public SparkListenerJobEnd(int job) { this.job = job; }
  public int jobId() { return job; } }""",
    "org/apache/spark/scheduler/SparkListener.java": """package org.apache.spark.scheduler;
public abstract class SparkListener {
  public void onJobStart(SparkListenerJobStart job) {}
  public void onJobEnd(SparkListenerJobEnd job) {} }""",
    "org/apache/spark/scheduler/ExecutorDecommissionInfo.java": """package org.apache.spark.scheduler;
public class ExecutorDecommissionInfo {
  public ExecutorDecommissionInfo(String message, scala.Option<String> host) {} }""",
    "org/apache/spark/ExecutorAllocationClient.java": """package org.apache.spark;
public interface ExecutorAllocationClient {
  scala.collection.Seq<String> getExecutorIds();
  boolean isExecutorActive(String id);
  scala.collection.Seq<String> killExecutors(scala.collection.Seq<String> ids, boolean adjust,
      boolean countFailures, boolean force);
  scala.collection.Seq<String> decommissionExecutors(
      scala.Tuple2<String, org.apache.spark.scheduler.ExecutorDecommissionInfo>[] named, boolean adjust,
      boolean byExecutor); }""",
    "org/apache/spark/status/api/v1/ExecutorSummary.java": """package org.apache.spark.status.api.v1;
public class ExecutorSummary { final String id; final int tasks, blocks;
  public ExecutorSummary(String id, int tasks, int blocks) {
    this.id = id; this.tasks = tasks; this.blocks = blocks; }
  public String id() { return id; }
  public int activeTasks() { return tasks; }
  public int rddBlocks() { return blocks; } }""",
    "org/apache/spark/status/AppStatusStore.java": """package org.apache.spark.status;
public class AppStatusStore {
  final java.util.List<org.apache.spark.status.api.v1.ExecutorSummary> held;
  public AppStatusStore(java.util.List<org.apache.spark.status.api.v1.ExecutorSummary> held) {
    this.held = held; }
  public scala.collection.Seq<org.apache.spark.status.api.v1.ExecutorSummary> executorList(boolean active) {
    if (yarnctl.Faults.next("status-store")) throw new NoSuchMethodError("executorList");
    return new scala.collection.Seq<>(held); } }""",
    "scala/collection/JavaConverters.java": """package scala.collection;
public class JavaConverters {
  public static <T> Buffer<T> asScalaBuffer(java.util.List<T> held) { return new Buffer<>(held); }
  public static class Buffer<T> { final java.util.List<T> held;
    Buffer(java.util.List<T> held) { this.held = held; }
    public Seq<T> toSeq() { return new Seq<>(held); } } }""",
    "org/apache/spark/SparkContext.java": """package org.apache.spark;
public class SparkContext implements ExecutorAllocationClient {
  public final SparkConf conf = new SparkConf();
  public int active = 4, target = 4;
  public final java.util.List<String> told = new java.util.ArrayList<>();
  public org.apache.spark.status.AppStatusStore statusStore() { // 2: cached, 3 and 5: idle, 4: has a task
    return new org.apache.spark.status.AppStatusStore(java.util.List.of(summary("2", 0, 1),
        summary("3", 0, 0), summary("4", 1, 0), summary("5", 0, 0))); }
  static org.apache.spark.status.api.v1.ExecutorSummary summary(String id, int tasks, int blocks) {
    return new org.apache.spark.status.api.v1.ExecutorSummary(id, tasks, blocks); }
  public scala.collection.Seq<String> killExecutors(scala.collection.Seq<String> ids, boolean adjust,
      boolean countFailures, boolean force) {
    java.util.List<String> gone = new java.util.ArrayList<>();
    var each = ids.iterator();
    while (each.hasNext()) { String id = each.next(); if (!id.equals("5")) gone.add(id); } // 5 has got a task
    told.add("kill " + gone + adjust + countFailures + force);
    active -= gone.size(); target -= adjust ? gone.size() : 0;
    return new scala.collection.Seq<>(gone); }
  public SparkConf getConf() { return conf; }
  public String master() { return "yarn"; }
  public void addSparkListener(org.apache.spark.scheduler.SparkListener listener) {
    if (yarnctl.Faults.next("listener")) throw new NoSuchMethodError("addSparkListener"); }
  public String applicationId() { return "application_1_0001"; }
  public org.apache.hadoop.conf.Configuration hadoopConfiguration() { return null; }
  public Object schedulerBackend() { return this; }
  public scala.collection.Seq<String> getExecutorIds() {
    java.util.List<String> ids = new java.util.ArrayList<>();
    for (int id = 1; id <= active; id++) ids.add("" + id);
    return new scala.collection.Seq<>(ids); }
  public boolean isExecutorActive(String id) { return true; }
  public scala.collection.Seq<String> decommissionExecutors(
      scala.Tuple2<String, org.apache.spark.scheduler.ExecutorDecommissionInfo>[] named, boolean adjust,
      boolean by) {
    java.util.List<String> gone = new java.util.ArrayList<>();
    for (var one : named) gone.add(one.one);
    told.add("decommission " + gone);
    active -= gone.size(); target -= gone.size();
    return new scala.collection.Seq<>(gone); }
  public boolean requestExecutors(int more) {
    if (yarnctl.Faults.next("request")) return false;
    target += more; active = target; return true; }
  public boolean requestTotalExecutors(int total, int local,
      scala.collection.immutable.Map<String, Object> hosts) {
    if (yarnctl.Faults.next("request")) return false;
    target = total; active = target; return true; } }""",
    "org/apache/spark/api/plugin/DriverPlugin.java": """package org.apache.spark.api.plugin;
public interface DriverPlugin {
  default void registerMetrics(String application, PluginContext p) {}
  default java.util.Map<String, String> init(org.apache.spark.SparkContext c, PluginContext p) {
    return null; }
  default void shutdown() {} }""",
    "org/apache/spark/api/plugin/ExecutorPlugin.java": (
        "package org.apache.spark.api.plugin;\npublic interface ExecutorPlugin {}"
    ),
    "org/apache/spark/api/plugin/PluginContext.java": """package org.apache.spark.api.plugin;
public interface PluginContext { com.codahale.metrics.MetricRegistry metricRegistry(); }""",
    "com/codahale/metrics/Metric.java": "package com.codahale.metrics;\npublic interface Metric {}",
    "com/codahale/metrics/Gauge.java": (
        "package com.codahale.metrics;\npublic interface Gauge<T> extends Metric { T getValue(); }"
    ),
    "com/codahale/metrics/MetricRegistry.java": """package com.codahale.metrics;
public class MetricRegistry {
  public final java.util.Map<String, Gauge<?>> held = new java.util.HashMap<>();
  public <T extends Metric> T register(String name, T metric) {
    held.put(name, (Gauge<?>) metric); return metric; } }""",
    "org/apache/spark/api/plugin/SparkPlugin.java": """package org.apache.spark.api.plugin;
public interface SparkPlugin { DriverPlugin driverPlugin(); ExecutorPlugin executorPlugin(); }""",
    "yarnctl/Play.java": """package yarnctl;
/** Two of four executors leave, a call fails as often as planned, the order `back` is given; looks follow. */
public final class Play {
  public static void main(String[] given) throws Exception {
    for (String dynamic : new String[] {"false", "true"}) {
      for (String call : new String[] {"list", "status", "open", "read", "request"}) {
        for (int times : new int[] {0, 1, 3}) {
          int active = played(dynamic, call, times);
          System.out.println(dynamic + " " + call + " " + times + " " + active + answer);
        }
      }
    }
    for (String dynamic : new String[] {"false", "true"}) {
      for (String least : new String[] {"0", "4", "5"}) {
        System.out.println("idle|" + dynamic + "|" + least + "|" + idle(dynamic, least, "true", 0));
      }
    }
    System.out.println("idle|false|no-service|" + idle("false", "0", "false", 0));
    System.out.println("idle|false|other-spark|" + idle("false", "0", "true", 1));
    kind = "idle"; // from here on only those that have no task may leave
    for (String dynamic : new String[] {"false", "true"}) {
      System.out.println("idle|only|" + dynamic + "|" + idle(dynamic, "0", "true", 0));
    }
    System.out.println("idle|only|no-service|" + idle("false", "0", "false", 0));
    System.out.println("idle|only|other-spark|" + idle("false", "0", "true", 1));
    String waited = batch("60000", true), late = batch("1", true), other = batch("60000", false);
    System.out.println("batch|" + waited + "|" + late + "|" + other);
  }

  /** What the driver is told during a job, and when it has ended; ``isBatch``: of a micro-batch. */
  static String batch(String gapMs, boolean isBatch) throws Exception {
    var files = org.apache.hadoop.fs.FileSystem.ONE.files;
    files.clear();
    Faults.left.clear();
    Faults.plan("listener", 1);
    var context = new org.apache.spark.SparkContext();
    context.conf.held.put("spark.yarnctl.gap", gapMs);
    var other = new org.apache.spark.SparkContext(); // a Spark without listeners: nothing is harmed
    other.conf.held.put("spark.yarnctl.requests", "/yarnctl/requests");
    var odd = new org.apache.spark.SparkContext(); // a number to Spark, which trims it: nothing is harmed
    odd.conf.held.put("spark.yarnctl.requests", "/yarnctl/requests");
    odd.conf.held.put("spark.executor.instances", "4 ");
    new Leave.Driver().init(odd, null);
    var driver = new Leave.Driver();
    driver.init(other, null);
    driver.shutdown();
    var orders = new Leave.Orders(context, "/yarnctl/requests");
    var properties = new java.util.Properties();
    if (isBatch) properties.setProperty("streaming.sql.batchId", "7");
    orders.batches.onJobStart(new org.apache.spark.scheduler.SparkListenerJobStart(3, properties));
    orders.batches.onJobStart(new org.apache.spark.scheduler.SparkListenerJobStart(4, null));
    files.put("000000001-leave-d1.order", "leave 3".getBytes());
    var reader = new Thread(() -> look(orders));
    reader.start();
    while (reader.getState() != Thread.State.TIMED_WAITING && reader.isAlive()) Thread.onSpinWait();
    if (gapMs.equals("1")) reader.join();
    String before = "" + context.told;
    orders.batches.onJobEnd(new org.apache.spark.scheduler.SparkListenerJobEnd(3));
    reader.join();
    return before + context.told;
  }

  static String kind = "leave";

  /** What the driver is told when 2 (cached), 3 (idle), 4 (a task), 5 (a task by now) leave; then back. */
  static String idle(String dynamic, String least, String service, int faults) throws Exception {
    var files = org.apache.hadoop.fs.FileSystem.ONE.files;
    files.clear();
    Faults.left.clear();
    Faults.plan("status-store", faults);
    var context = new org.apache.spark.SparkContext();
    context.active = context.target = 5;
    context.conf.held.put("spark.executor.instances", "5");
    context.conf.held.put("spark.dynamicAllocation.enabled", dynamic);
    context.conf.held.put("spark.dynamicAllocation.minExecutors", least);
    context.conf.held.put("spark.shuffle.service.enabled", service);
    var orders = new Leave.Orders(context, "/yarnctl/requests");
    files.put("000000001-" + kind + "-d1.order", "leave 2 3 4 5".getBytes());
    look(orders);
    int left = context.target;
    files.put("000000002-back-d1.order", "back d1".getBytes());
    look(orders);
    return context.told + "|" + left + ">" + context.target;
  }

  static String answer;

  static int played(String dynamic, String call, int times) throws Exception {
    var files = org.apache.hadoop.fs.FileSystem.ONE.files;
    files.clear();
    Faults.left.clear();
    var context = new org.apache.spark.SparkContext();
    context.conf.held.put("spark.executor.instances", "4");
    context.conf.held.put("spark.dynamicAllocation.enabled", dynamic);
    var driver = new Leave.Driver();
    driver.orders = new Leave.Orders(context, "/yarnctl/requests");
    var orders = driver.orders;
    var metrics = new com.codahale.metrics.MetricRegistry();
    driver.registerMetrics("application_1_0001", () -> metrics);
    files.put("000000001-leave-d1.order", "leave 3 4".getBytes());
    look(orders);
    if (context.active != 2) throw new AssertionError("two left: " + context.active);
    answer = said(metrics);
    Faults.plan(call, times);
    files.put("000000002-back-d1.order", "back d1".getBytes());
    files.put("000000002-leave-d2.order", "leave 1 2".getBytes()); // of a frozen daemon: its number was used
    for (int k = 0; k < 6; k++) look(orders);
    answer += said(metrics);
    return context.active;
  }

  static String said(com.codahale.metrics.MetricRegistry metrics) {
    return " " + metrics.held.get("order").getValue() + "," + metrics.held.get("executors").getValue();
  }

  static void look(Leave.Orders orders) {
    try {
      orders.look();
    } catch (Exception fault) {
      // As in the reader's thread: looked at again.
    }
  }
}""",
}

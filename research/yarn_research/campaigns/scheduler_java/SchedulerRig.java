package scheduling;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.thirdparty.com.google.common.collect.Multiset;
import org.apache.hadoop.util.VersionInfo;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.protocolrecords.GetNewApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.SubmitApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.UpdateApplicationPriorityRequest;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeLabel;
import org.apache.hadoop.yarn.api.records.PreemptionContainer;
import org.apache.hadoop.yarn.api.records.PreemptionMessage;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceInformation;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.api.records.ResourceUtilization;
import org.apache.hadoop.yarn.client.cli.RMAdminCLI;
import org.apache.hadoop.yarn.client.cli.SchedConfCLI;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.event.Dispatcher;
import org.apache.hadoop.yarn.event.EventHandler;
import org.apache.hadoop.yarn.security.AMRMTokenIdentifier;
import org.apache.hadoop.yarn.server.api.protocolrecords.NodeHeartbeatRequest;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerRequest;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerResponse;
import org.apache.hadoop.yarn.server.api.records.MasterKey;
import org.apache.hadoop.yarn.server.api.records.NodeHealthStatus;
import org.apache.hadoop.yarn.server.api.records.NodeStatus;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;
import org.apache.hadoop.yarn.server.resourcemanager.nodelabels.RMNodeLabelsManager;
import org.apache.hadoop.yarn.server.resourcemanager.monitor.SchedulingMonitor;
import org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.ProportionalCapacityPreemptionPolicy;
import org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.TempQueuePerPartition;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMAppState;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttempt;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptState;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.QueueMetrics;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceUsage;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerApplicationAttempt;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CSQueue;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.UsersManager;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerApp;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.SchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.policy.AbstractComparatorOrderingPolicy;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.policy.OrderingPolicy;
import org.apache.hadoop.yarn.server.scheduler.SchedulerRequestKey;
import org.apache.hadoop.yarn.server.utils.BuilderUtils;
import org.apache.hadoop.yarn.util.resource.ResourceUtils;

/**
 * A real ResourceManager in this process, with nodes and masters that act only on command.
 *
 * One command per line of standard input, one answer per line of standard output, both JSON. Each answer
 * comes after the ResourceManager has handled all events that the command caused. Masters are unmanaged: they
 * have no container, and launch nothing in the containers that they hold. See scheduler_rig.py beside this folder.
 */
public final class SchedulerRig {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final long PATIENCE_MS = 30_000;
  private static final ResourceUtilization IDLE = ResourceUtilization.newInstance(0, 0, 0f);

  /** The daemon's class; it handles scheduler events with all others, so one queue is all. */
  private static final class SteppedManager extends ResourceManager {
    private QueuedDispatcher dispatcher;

    @Override
    protected Dispatcher createDispatcher() {
      dispatcher = new QueuedDispatcher();
      return dispatcher;
    }

    @Override
    protected EventHandler<SchedulerEvent> createSchedulerEventDispatcher() {
      return event -> scheduler.handle(event);
    }

    /** Handle all events, what that causes included. */
    private void settle() {
      dispatcher.drain();
    }
  }

  private static final class SteppedNode {
    private NodeId id;
    private MasterKey containerKey;
    private MasterKey tokenKey;
    private int beat;
  }

  private static final class Master {
    private ApplicationAttemptId attempt;
    private UserGroupInformation user;
    private int response;
  }

  private final Map<String, SteppedNode> nodes = new LinkedHashMap<>();
  private final Map<String, Master> masters = new LinkedHashMap<>();
  private SteppedManager manager;

  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    OnePair.install();
    System.setOut(System.err);  // whatever else prints must not break a line of JSON
    SchedulerRig rig = new SchedulerRig();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      ObjectNode answer = JSON.createObjectNode();
      try {
        rig.perform(JSON.readTree(line), answer);
      } catch (Exception problem) {
        problem.printStackTrace();
        answer.put("error", problem.toString());
      }
      out.println(JSON.writeValueAsString(answer));
      out.flush();
    }
    System.exit(0);
  }

  private void perform(JsonNode command, ObjectNode answer) throws Exception {
    switch (command.get("command").asText()) {
      case "start" -> start(command);
      case "stop" -> stop();
      case "labels" -> labels(command);
      case "node" -> node(command);
      case "submit" -> answer.put("application", submit(command));
      case "priority" -> priority(command);
      case "request" -> request(command, answer);
      case "active" -> answer.put("active", isActive(command.get("application").asText()));
      case "beat" -> beat(command, answer);
      case "free" -> free(command, answer);
      case "reserved" -> reserved(answer);
      case "history" -> history(answer);
      case "preempt" -> preempt(answer);
      case "client" -> client(command, answer);
      default -> throw new IllegalArgumentException("unknown command " + command);
    }
  }

  private void start(JsonNode command) throws Exception {
    stop();
    DefaultMetricsSystem.setMiniClusterMode(true);
    QueueMetrics.clearQueueMetrics();
    YarnConfiguration configuration = new YarnConfiguration();
    Iterator<Map.Entry<String, JsonNode>> given = command.get("configuration").fields();
    while (given.hasNext()) {
      Map.Entry<String, JsonNode> entry = given.next();
      configuration.set(entry.getKey(), entry.getValue().asText());
    }
    UserGroupInformation.setConfiguration(configuration);
    ResourceUtils.resetResourceTypes(configuration);
    manager = new SteppedManager();
    manager.init(configuration);
    manager.start();
    manager.settle();
  }

  private void stop() {
    if (manager != null) {
      manager.stop();
      manager = null;
    }
    nodes.clear();
    masters.clear();
  }

  /** Add node labels to the cluster, and put some on hosts whose nodes have not registered yet. */
  private void labels(JsonNode command) throws Exception {
    RMNodeLabelsManager labels = manager.getRMContext().getNodeLabelManager();
    List<NodeLabel> added = new ArrayList<>();
    command.get("exclusive").fields().forEachRemaining(
        each -> added.add(NodeLabel.newInstance(each.getKey(), each.getValue().asBoolean())));
    labels.addToCluserNodeLabels(added);
    Map<NodeId, Set<String>> hosts = new LinkedHashMap<>();
    command.get("hosts").fields().forEachRemaining(
        each -> hosts.put(NodeId.newInstance(each.getKey(), 0), Set.of(each.getValue().asText())));
    labels.replaceLabelsOnNode(hosts);
    manager.settle();
  }

  private void node(JsonNode command) throws Exception {
    SteppedNode node = new SteppedNode();
    node.id = NodeId.newInstance(command.get("host").asText(), 8041);
    RegisterNodeManagerResponse response =
        manager.getResourceTrackerService().registerNodeManager(
            RegisterNodeManagerRequest.newInstance(
                node.id, 8042, size(command), VersionInfo.getVersion(), new ArrayList<>(), new ArrayList<>(),
                null, null, null, status(node)));
    node.containerKey = response.getContainerTokenMasterKey();
    node.tokenKey = response.getNMTokenMasterKey();
    nodes.put(node.id.toString(), node);
    manager.settle();
  }

  private static NodeStatus status(SteppedNode node) {
    return NodeStatus.newInstance(
        node.id, node.beat, Collections.<ContainerStatus>emptyList(), Collections.<ApplicationId>emptyList(),
        NodeHealthStatus.newInstance(true, "", 0), IDLE, IDLE, Collections.<Container>emptyList());
  }

  private static Resource size(JsonNode command) {
    Resource size = Resource.newInstance(command.get("memory_mib").asLong(), command.get("vcores").asInt());
    if (command.has("others")) {
      Iterator<Map.Entry<String, JsonNode>> others = command.get("others").fields();
      while (others.hasNext()) {
        Map.Entry<String, JsonNode> other = others.next();
        size.setResourceValue(other.getKey(), other.getValue().asLong());
      }
    }
    return size;
  }

  /** Write a size as a command has one; {@code others} only in a cluster with other resource types. */
  private static void size(ObjectNode row, Resource size) {
    row.put("memory_mib", size.getMemorySize()).put("vcores", size.getVirtualCores());
    ObjectNode others = size.getResources().length > 2 ? row.putObject("others") : null;
    for (int index = 2; index < size.getResources().length; index++) {
      ResourceInformation other = size.getResourceInformation(index);
      others.put(other.getName(), other.getValue());
    }
  }

  private String submit(JsonNode command) throws Exception {
    UserGroupInformation owner = UserGroupInformation.createRemoteUser(command.get("user").asText());
    ApplicationId id = owner.doAs((PrivilegedExceptionAction<ApplicationId>) () -> {
      ApplicationId made =
          manager.getClientRMService().getNewApplication(GetNewApplicationRequest.newInstance())
              .getApplicationId();
      ApplicationSubmissionContext context =
          ApplicationSubmissionContext.newInstance(
              made, command.get("name").asText(), command.get("queue").asText(),
              Priority.newInstance(command.get("priority").asInt()),
              ContainerLaunchContext.newInstance(null, null, null, null, null, null),
              true, false, 1, BuilderUtils.newResource(1, 1), "stepped");
      manager.getClientRMService().submitApplication(SubmitApplicationRequest.newInstance(context));
      return made;
    });
    RMApp application = manager.getRMContext().getRMApps().get(id);
    await(() -> application.getState() != RMAppState.NEW && application.getCurrentAppAttempt() != null
        && application.getCurrentAppAttempt().getAppAttemptState() == RMAppAttemptState.LAUNCHED, id);
    RMAppAttempt attempt = application.getCurrentAppAttempt();
    Master master = new Master();
    master.attempt = attempt.getAppAttemptId();
    master.user = UserGroupInformation.createRemoteUser(master.attempt.toString());
    AMRMTokenIdentifier token = attempt.getAMRMToken().decodeIdentifier();
    master.user.addTokenIdentifier(token);
    master.user.doAs((PrivilegedExceptionAction<Object>) () ->
        manager.getApplicationMasterService().registerApplicationMaster(
            RegisterApplicationMasterRequest.newInstance("127.0.0.1", 0, "")));
    await(() -> application.getState() == RMAppState.RUNNING, id);
    masters.put(id.toString(), master);
    return id.toString();
  }

  private interface Condition {
    boolean holds();
  }

  private void await(Condition condition, ApplicationId id) throws InterruptedException {
    long until = System.currentTimeMillis() + PATIENCE_MS;
    while (!condition.holds()) {
      if (System.currentTimeMillis() > until) {
        RMApp application = manager.getRMContext().getRMApps().get(id);
        throw new IllegalStateException(
            id + " stays " + application.getState() + ": " + application.getDiagnostics());
      }
      Thread.sleep(2);
      manager.settle();
    }
    manager.settle();
  }

  private void priority(JsonNode command) throws Exception {
    manager.getClientRMService().updateApplicationPriority(
        UpdateApplicationPriorityRequest.newInstance(
            ApplicationId.fromString(command.get("application").asText()),
            Priority.newInstance(command.get("priority").asInt())));
    manager.settle();
  }

  private void request(JsonNode command, ObjectNode answer) throws Exception {
    List<ResourceRequest> requests = new ArrayList<>();
    for (JsonNode row : command.get("requests")) {
      requests.add(
          ResourceRequest.newInstance(
              Priority.newInstance(row.get("priority").asInt()), ResourceRequest.ANY, size(row),
              row.get("count").asInt(), true, row.has("label") ? row.get("label").asText() : null));
    }
    allocate(command.get("application").asText(), requests, new ArrayList<>(), answer);
  }

  private void free(JsonNode command, ObjectNode answer) throws Exception {
    List<ContainerId> given = List.of(ContainerId.fromString(command.get("container").asText()));
    allocate(command.get("application").asText(), new ArrayList<>(), given, answer);
  }

  private void allocate(
      String application, List<ResourceRequest> requests, List<ContainerId> given, ObjectNode answer)
      throws Exception {
    Master master = masters.get(application);
    AllocateResponse response = master.user.doAs((PrivilegedExceptionAction<AllocateResponse>) () ->
        manager.getApplicationMasterService().allocate(
            AllocateRequest.newInstance(master.response, 0.5f, requests, given, null)));
    master.response = response.getResponseId();
    manager.settle();
    ArrayNode granted = answer.withArray("granted");
    for (Container container : response.getAllocatedContainers()) {
      ObjectNode row = granted.addObject()
          .put("container", container.getId().toString())
          .put("application", application)
          .put("node", container.getNodeId().toString())
          .put("priority", container.getPriority().getPriority());
      size(row, container.getResource());
    }
    PreemptionMessage message = response.getPreemptionMessage();
    if (message != null) {
      ArrayNode warned = answer.withArray("warned");
      if (message.getStrictContract() != null) {
        for (PreemptionContainer each : message.getStrictContract().getContainers()) {
          warned.add(each.getId().toString());
        }
      }
      if (message.getContract() != null) {
        for (PreemptionContainer each : message.getContract().getContainers()) {
          warned.add(each.getId().toString());
        }
      }
    }
    for (ContainerStatus status : response.getCompletedContainersStatuses()) {
      answer.withArray("ended").addObject()
          .put("container", status.getContainerId().toString()).put("status", status.getExitStatus());
    }
  }

  private boolean isActive(String application) throws Exception {
    FiCaSchedulerApp found =
        ((CapacityScheduler) manager.getResourceScheduler())
            .getApplicationAttempt(masters.get(application).attempt);
    return policyOf((CSQueue) found.getQueue()).getSchedulableEntities().contains(found);
  }

  // The class of leaf queues has another name in 3.3
  @SuppressWarnings("unchecked")
  private static OrderingPolicy<FiCaSchedulerApp> policyOf(CSQueue leaf) throws Exception {
    return (OrderingPolicy<FiCaSchedulerApp>) leaf.getClass().getMethod("getOrderingPolicy").invoke(leaf);
  }

  /** One heartbeat of a node, or of each in turn; then every master takes what it was given. */
  private void beat(JsonNode command, ObjectNode answer) throws Exception {
    for (JsonNode name : command.get("nodes")) {
      SteppedNode node = nodes.get(name.asText());
      manager.getResourceTrackerService().nodeHeartbeat(
          NodeHeartbeatRequest.newInstance(status(node), node.containerKey, node.tokenKey, null));
      node.beat++;
      manager.settle();
    }
    answer.withArray("granted");
    for (String application : masters.keySet()) {
      allocate(application, new ArrayList<>(), new ArrayList<>(), answer);
    }
  }

  /** The reservations, which no answer of the web service has with their nodes. */
  private void reserved(ObjectNode answer) {
    ArrayNode rows = answer.withArray("reserved");
    for (SteppedNode each : nodes.values()) {
      SchedulerNode node = ((CapacityScheduler) manager.getResourceScheduler()).getSchedulerNode(each.id);
      RMContainer container = node.getReservedContainer();
      if (container != null) {
        ObjectNode row = rows.addObject()
            .put("node", each.id.toString())
            .put("application", container.getApplicationAttemptId().getApplicationId().toString())
            .put("priority", container.getReservedSchedulerKey().getPriority().getPriority());
        size(row, container.getReservedResource());
      }
    }
  }

  /**
   * What the scheduler remembers and no answer of the web service has: how often each reservation was tried
   * in vain, each leaf's sum of its users' shares of each partition, which gathers errors of rounding, the
   * memory by which a fair leaf orders each application, and how often shared partitions have refused its
   * requests without a label, by priority.
   */
  private void history(ObjectNode answer) throws Exception {
    CapacityScheduler scheduler = (CapacityScheduler) manager.getResourceScheduler();
    ObjectNode tries = answer.putObject("in_vain");
    for (SteppedNode each : nodes.values()) {
      RMContainer container = scheduler.getSchedulerNode(each.id).getReservedContainer();
      if (container != null) {
        tries.put(
            each.id.toString(),
            scheduler.getApplicationAttempt(container.getApplicationAttemptId())
                .getReReservations(container.getReservedSchedulerKey()));
      }
    }
    ObjectNode ratios = answer.putObject("users_ratios");
    ObjectNode labelled = answer.putObject("labelled_ratios");
    ObjectNode ranked = answer.putObject("ranked_mib");
    ObjectNode refused = answer.putObject("refused");
    Field missed =
        SchedulerApplicationAttempt.class.getDeclaredField("missedNonPartitionedReqSchedulingOpportunity");
    missed.setAccessible(true);
    for (CSQueue queue : scheduler.getCapacitySchedulerQueueManager().getQueues().values()) {
      if (queue.getChildQueues() == null) {
        UsersManager users = (UsersManager) queue.getClass().getMethod("getUsersManager").invoke(queue);
        ratios.put(queue.getQueuePath(), users.getUsageRatio(""));
        for (String label : manager.getRMContext().getNodeLabelManager().getClusterNodeLabelNames()) {
          ObjectNode row = (ObjectNode) labelled.get(label);
          (row == null ? labelled.putObject(label) : row).put(queue.getQueuePath(), users.getUsageRatio(label));
        }
        Field changed = AbstractComparatorOrderingPolicy.class.getDeclaredField("entitiesToReorder");
        changed.setAccessible(true);
        OrderingPolicy<FiCaSchedulerApp> policy = policyOf(queue);
        for (FiCaSchedulerApp app : policy.getSchedulableEntities()) {
          ResourceUsage usage = app.getSchedulingResourceUsage();
          boolean isChanged = ((Map<?, ?>) changed.get(policy)).containsKey(app.getId());
          Resource used = isChanged ? usage.getAllUsed() : usage.getCachedUsed("*");
          ranked.put(app.getApplicationId().toString(), used.getMemorySize());
          ObjectNode row = refused.putObject(app.getApplicationId().toString());
          for (Multiset.Entry<?> each : ((Multiset<?>) missed.get(app)).entrySet()) {
            row.put(
                String.valueOf(((SchedulerRequestKey) each.getElement()).getPriority().getPriority()),
                each.getCount());
          }
        }
      }
    }
  }

  /** Hadoop's own client in this process, which has it started already; it calls over HTTP or RPC. */
  private void client(JsonNode command, ObjectNode answer) throws Exception {
    List<String> words = new ArrayList<>();
    command.get("words").forEach(word -> words.add(word.asText()));
    String program = words.remove(0);
    ByteArrayOutputStream said = new ByteArrayOutputStream();
    PrintStream out = System.out;
    PrintStream err = System.err;
    PrintStream both = new PrintStream(said, true, StandardCharsets.UTF_8);
    System.setOut(both);
    System.setErr(both);
    try {
      UserGroupInformation user = UserGroupInformation.createRemoteUser(command.get("user").asText());
      answer.put("status", user.doAs((PrivilegedExceptionAction<Integer>) () -> {
        Tool tool = switch (program) {
          case "schedulerconf" -> new SchedConfCLI();
          case "rmadmin" -> new RMAdminCLI();
          default -> throw new IllegalArgumentException("unknown program " + program);
        };
        tool.setConf(new YarnConfiguration(manager.getConfig()));
        return tool.run(words.toArray(new String[0]));
      }));
    } finally {
      System.setOut(out);
      System.setErr(err);
    }
    manager.settle();
    answer.put("said", said.toString(StandardCharsets.UTF_8));
  }

  /**
   * One round of the monitor's own policy; what it computed per queue, and the containers that it warned.
   *
   * The monitor's thread does not run a round meanwhile if its interval is set long enough.
   */
  private void preempt(ObjectNode answer) throws Exception {
    CapacityScheduler scheduler = (CapacityScheduler) manager.getResourceScheduler();
    SchedulingMonitor monitor = scheduler.getSchedulingMonitorManager().getAvailableSchedulingMonitor();
    ProportionalCapacityPreemptionPolicy policy =
        (ProportionalCapacityPreemptionPolicy) monitor.getSchedulingEditPolicy();
    reserved(answer);
    policy.editSchedule();
    manager.settle();
    Method computed = ProportionalCapacityPreemptionPolicy.class.getDeclaredMethod("getQueuePartitions");
    computed.setAccessible(true);
    ArrayNode queues = answer.withArray("queues");
    for (Object partitions : ((Map<?, ?>) computed.invoke(policy)).values()) {
      for (Object each : ((Map<?, ?>) partitions).values()) {
        TempQueuePerPartition queue = (TempQueuePerPartition) each;
        ObjectNode row = queues.addObject().put("queue", queue.getQueueName())
            .put("label", (String) hidden(queue, "partition"))
            .put("leaf", queue.getChildren().isEmpty())
            .put("priority", (int) hidden(queue, "relativePriority"))
            .put("untouchable", (boolean) hidden(queue, "preemptionDisabled"))
            .put("ratio", (float) hidden(queue, "absCapacity"));
        vector(row, "guaranteed", queue.getGuaranteed());
        vector(row, "maximum", queue.getMax());
        vector(row, "used", queue.getUsed());
        vector(row, "reserved", queue.getReserved());
        vector(row, "pending", queue.getPending());
        vector(row, "unreserved", (Resource) hidden(queue, "pendingDeductReserved"));
        vector(row, "ideal", queue.getIdealAssigned());
        vector(row, "gives", queue.getActuallyToBePreempted());
      }
    }
    answer.withArray("warned");
    for (String application : masters.keySet()) {
      allocate(application, new ArrayList<>(), new ArrayList<>(), answer);
    }
  }

  private static Object hidden(TempQueuePerPartition queue, String name) throws Exception {
    Field field = TempQueuePerPartition.class.getDeclaredField(name);
    field.setAccessible(true);
    return field.get(queue);
  }

  private static void vector(ObjectNode row, String name, Resource size) {
    ArrayNode vector = row.withArray(name).add(size.getMemorySize()).add(size.getVirtualCores());
    for (int index = 2; index < size.getResources().length; index++) {
      vector.add(size.getResourceInformation(index).getValue());
    }
  }
}

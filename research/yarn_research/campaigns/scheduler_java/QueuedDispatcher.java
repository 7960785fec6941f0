package scheduling;

import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.hadoop.service.AbstractService;
import org.apache.hadoop.yarn.event.Dispatcher;
import org.apache.hadoop.yarn.event.Event;
import org.apache.hadoop.yarn.event.EventHandler;

/**
 * The ResourceManager's events in one queue, which the thread that calls {@link #drain} handles in order.
 *
 * A thread of its own, as Hadoop has it, costs two changes of threads for each command: on a busy machine
 * they were most of the time of a campaign.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
final class QueuedDispatcher extends AbstractService implements Dispatcher {
  private final Queue<Event> events = new ConcurrentLinkedQueue<>();
  private final Map<Class<?>, List<EventHandler>> handlers = new ConcurrentHashMap<>();

  QueuedDispatcher() {
    super("QueuedDispatcher");
  }

  @Override
  public void register(Class<? extends Enum> type, EventHandler handler) {
    handlers.computeIfAbsent(type, each -> new CopyOnWriteArrayList<>()).add(handler);
  }

  @Override
  public EventHandler<Event> getEventHandler() {
    return events::add;
  }

  /** Handle all events, those too that the handling causes. */
  void drain() {
    for (Event event = events.poll(); event != null; event = events.poll()) {
      Class<?> type = ((Enum<?>) event.getType()).getDeclaringClass();
      for (EventHandler handler : handlers.getOrDefault(type, List.of())) {
        handler.handle(event);
      }
    }
  }
}

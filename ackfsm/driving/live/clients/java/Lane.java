import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Predicate;

/**
 * The commands of one session, in the thread that may use it: its own, or that in which its listener is called, while that
 * holds a message.
 */
final class Lane {
    private final Deque<Map<String, Object>> waiting = new ArrayDeque<>();
    private final Consumer<Map<String, Object>> perform;
    private boolean held;
    private boolean closed;

    Lane(String name, Consumer<Map<String, Object>> perform) {
        this.perform = perform;
        Thread thread = new Thread(() -> goOn(false, command -> false), name);
        thread.setDaemon(true);
        thread.start();
    }

    synchronized void add(Map<String, Object> command) {
        waiting.add(command);
        notifyAll();
    }

    /** What waits is performed, and then the thread ends. */
    synchronized void close() {
        closed = true;
        notifyAll();
    }

    /** A listener was called: its thread performs the commands from now on, if it asks for them by {@link #until}. */
    void hold() {
        hold(true);
    }

    /** In the thread of a listener: perform the commands until one of them lets it go, and return that. */
    Map<String, Object> until(Predicate<Map<String, Object>> letsGo) {
        return goOn(true, letsGo);
    }

    /** The listener has returned: commands are performed by the thread of the session again. */
    void release() {
        hold(false);
    }

    synchronized boolean held() {
        return held;
    }

    private synchronized void hold(boolean now) {
        held = now;
        notifyAll();
    }

    private Map<String, Object> goOn(boolean listener, Predicate<Map<String, Object>> letsGo) {
        for (Map<String, Object> command = next(listener); command != null; command = next(listener)) {
            if (letsGo.test(command)) {
                return command;
            }
            perform.accept(command);
        }
        return null;
    }

    private synchronized Map<String, Object> next(boolean listener) {
        try {
            while (waiting.isEmpty() ? listener || !closed : held && !listener) {
                wait();
            }
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
        return waiting.poll();
    }
}

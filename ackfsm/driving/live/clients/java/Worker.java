import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.ConnectionMetaData;
import javax.jms.JMSException;

/**
 * A client of JMS that does what it is told: java Worker CLIENT, where CLIENT is a JSON object that describes the library.
 *
 * <p>The commands and answers are those of ackfsm.driving.live.clients. The connection is a recorded one, and each session is
 * a process of the history, since it is a thread of its own.
 */
public final class Worker {
    private static final List<String> TIME_OUTS = List.of("timed out", "timedout", "timeout");
    private static final int PATIENCE = 3;
    private static final int A_WHILE = 20;

    /** What the library is: the class of its factory, and how its settings, modes and destinations are said. */
    final Map<String, Object> client;
    final RecordingConnectionFactory.Options options = new RecordingConnectionFactory.Options();
    /** Who the session is that this thread makes. */
    final ThreadLocal<String> making = new ThreadLocal<>();
    /** What is left to do in this thread when the listener has returned, and its lines are written. */
    final ThreadLocal<Runnable> returning = new ThreadLocal<>();

    private final PrintStream out;
    private final Map<String, JmsSession> sessions = new ConcurrentHashMap<>();
    private final ExecutorService connecting = Executors.newSingleThreadExecutor(daemons());
    private final ExecutorService waiting = Executors.newCachedThreadPool(daemons());
    /** The name of the client in the history. */
    String process;
    private ConnectionFactory factory;
    /** By which the next connection is named, unless it is null. */
    private String clientId;
    private volatile Link link;

    /** A connection, and whether it broke. */
    static final class Link {
        final Connection connection;
        volatile boolean broken;
        volatile boolean closed;

        Link(Connection connection, String clientId) throws Exception {
            this.connection = connection;
            if (clientId != null) {
                connection.setClientID(clientId);
            }
            connection.setExceptionListener(error -> broken |= !RecordingConnectionFactory.GOES_ON.equals(error.getErrorCode()));
            connection.start();
        }

        void check() {
            if (broken || closed) {
                throw new Failure("closed", broken ? "the connection broke" : "the connection is closed");
            }
        }
    }

    /** An error of a kind that the protocol has. */
    static final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1;
        final String kind;

        Failure(String kind, String why) {
            super(why);
            this.kind = kind;
        }
    }

    private Worker(Map<String, Object> client, PrintStream out) {
        this.client = client;
        this.out = out;
        options.keepIds = true;
        options.processOfSession = making::get;
        options.listenerReturned = () -> {
            returning.get().run();
            returning.remove();
        };
    }

    public static void main(String[] args) throws IOException {
        Worker worker = new Worker(Json.object(args[0]), new PrintStream(System.out, true, StandardCharsets.UTF_8));
        System.setOut(System.err); // some libraries print
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            worker.dispatch(Json.object(line));
        }
        Runtime.getRuntime().halt(0);
    }

    private void dispatch(Map<String, Object> command) {
        String name = (String) command.get("session");
        String op = String.valueOf(command.get("op"));
        if (name == null) {
            connecting.execute(() -> answering(command, () -> connection(op, command)));
        } else if (op.equals("session")) {
            sessions.put(name, new JmsSession(this, link, command));
        } else if (!sessions.containsKey(name)) {
            answering(command, () -> {
                throw new Failure("closed", "there is no session " + name);
            });
        } else if (op.equals("listened")) {
            waiting.execute(() -> answering(command, () -> sessions.get(name).listened(command)));
        } else {
            sessions.get(name).lane.add(command);
        }
    }

    /** Answer what {@code found} gives, or says by an exception; null is answered later. */
    void answering(Map<String, Object> command, Callable<Map<String, Object>> found) {
        try {
            Map<String, Object> answer = found.call();
            if (answer != null) {
                answer(command, answer);
            }
        } catch (Failure error) {
            answer(command, fields("error", error.kind, "why", error.getMessage()));
        } catch (UncheckedIOException error) {
            error.printStackTrace();
            Runtime.getRuntime().halt(1); // a history with a hole would accuse the broker
        } catch (Throwable error) {
            answer(command, fields("error", kind(error, (String) command.get("op")), "why", error.toString()));
        }
    }

    void answer(Map<String, Object> command, Map<String, Object> fields) {
        Map<String, Object> all = fields("id", command.get("id"));
        all.putAll(fields);
        out.println(Json.written(all));
    }

    static Map<String, Object> fields(Object... namesAndValues) {
        Map<String, Object> made = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            made.put((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return made;
    }

    private static String kind(Throwable error, String op) {
        boolean connecting = List.of("open", "reopen").contains(op);
        boolean wrong = error instanceof LinkageError || error instanceof ReflectiveOperationException
            || error instanceof RuntimeException && !connecting; // a library may stumble over a broker that goes
        if (RecordingConnectionFactory.refused(error) || wrong) {
            return "refused";
        }
        for (Throwable each = error; each != null && !connecting; each = each.getCause()) {
            String text = each.toString().toLowerCase(Locale.ROOT);
            if (TIME_OUTS.stream().anyMatch(text::contains)) {
                return "timeout";
            }
        }
        return connecting ? "down" : "closed";
    }

    private Map<String, Object> connection(String op, Map<String, Object> command) throws Exception {
        switch (op) {
            case "open":
                factory = opened(command);
                return connected(command);
            case "reopen":
                sessions.clear();
                Link before = link;
                if (before != null && !before.closed) {
                    // A broken connection may wait for what holds its listeners, and need not close in good order.
                    waiting.submit(() -> abandoned(before)).get(PATIENCE, TimeUnit.SECONDS);
                }
                return connected(command);
            case "close":
                link.check();
                closed(link);
                return Map.of();
            default:
                throw new Failure("refused", "there is no command " + op + " without a session");
        }
    }

    private static void abandoned(Link link) {
        try {
            closed(link);
        } catch (Exception error) {
            System.err.println("a connection that is given up did not close: " + error);
        }
    }

    private static Void closed(Link link) throws Exception {
        link.closed = true;
        link.connection.close();
        return null;
    }

    private Map<String, Object> connected(Map<String, Object> command) throws Exception {
        clientId = (String) command.get("client_id");
        link = clientId == null ? linked() : patiently(this::linked);
        ConnectionMetaData told = link.connection.getMetaData();
        return fields("library", client.get("library") + " " + told.getProviderVersion());
    }

    private Link linked() throws Exception {
        Connection made = factory.createConnection();
        try {
            return new Link(made, clientId);
        } catch (JMSException taken) {
            made.close();
            throw taken;
        }
    }

    /** Try what only one client may have, until the broker has noticed that the last one is gone. */
    static <T> T patiently(Callable<T> call) throws Exception {
        for (long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE);; Thread.sleep(A_WHILE)) {
            try {
                return call.call();
            } catch (JMSException error) {
                if (System.nanoTime() > end) {
                    throw error;
                }
            }
        }
    }

    private ConnectionFactory opened(Map<String, Object> command) throws Exception {
        Map<String, Object> settings = Json.strings(command.get("settings"));
        options.sendWaits = waits("PERSISTENT", settings);
        options.nonPersistentSendWaits = waits("NON_PERSISTENT", settings);
        options.acknowledgeWaits = waits("acknowledge", settings);
        process = (String) command.get("process");
        Path history = Path.of((String) command.get("history"));
        if (!Files.exists(history)) {
            Map<String, Object> header = fields("ackfsm_history", 1L);
            header.putAll(Json.strings(command.get("header")));
            header.put("clock", fields("offset", 0L, "boot", Files.readString(RecordingConnectionFactory.BOOT).trim()));
            Files.writeString(history, Json.written(header) + "\n");
        }
        ConnectionFactory real = (ConnectionFactory) Class.forName((String) client.get("factory"))
            .getConstructor(String.class).newInstance(Urls.of(client, command, settings));
        return RecordingConnectionFactory.wrap(real, history, process, null, options);
    }

    /** Whether a call waits for the broker: its rule is a setting, what that is by default, and with what it waits. */
    private boolean waits(String call, Map<String, Object> settings) {
        List<?> rule = (List<?>) Json.strings(client.get("waits")).get(call);
        if (rule == null) {
            return false;
        }
        Object value = settings.getOrDefault((String) rule.get(0), rule.get(1));
        return rule.subList(2, rule.size()).contains(value.toString());
    }

    private static ThreadFactory daemons() {
        return work -> {
            Thread thread = new Thread(work);
            thread.setDaemon(true);
            return thread;
        };
    }
}

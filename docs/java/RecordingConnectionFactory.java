import java.io.BufferedReader;
import java.io.Closeable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Enumeration;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Records what the connections of a JMS ConnectionFactory do, as a history of format 1 that {@code ackfsm verify} reads.
 *
 * <pre>
 * ConnectionFactory factory = RecordingConnectionFactory.wrap(
 *     new ActiveMQConnectionFactory(url), Path.of("night.jsonl"), "billing", "{\"profile\": \"artemis\"}");
 * </pre>
 *
 * Copy this file into your project; it needs Java 11 and nothing else. It works by reflection, hence with javax.jms and with
 * jakarta.jms, and with every provider. What is recorded: send with its outcome (also by CompletionListener), delivery by
 * receive() and by MessageListener, acknowledge(), commit(), rollback(), recover(), close(), and connections that the provider
 * reports as broken (ExceptionListener), or replaces by itself (the failover listeners of Artemis, ActiveMQ and Qpid).
 *
 * Rules
 * <ul>
 * <li>Each message gets an id of its own in the property {@value #ID}; a message object that is sent again gets a new one,
 * unless its last send was in doubt. Consumers without this class see the property and nothing else.
 * <li>"processed" is written when a listener returns, or calls acknowledge() or commit(); after receive(), when the message is
 * acknowledged, or when the session goes on: next receive(), commit(), close(). A listener that throws writes "failed"; so
 * does an acknowledge() that says another outcome of AMQP 1.0 ({@value #OUTCOME}).
 * <li>"close" is written when close() has returned: of a consumer with its name, of a session, of each session of a connection.
 * <li>acknowledge() covers the session where the mode is CLIENT_ACKNOWLEDGE, and its message in the modes of vendors.
 * "acknowledged" is written only with {@link Options#acknowledgeWaits}: most providers do not wait for the broker.
 * <li>An exception of send() is "in_doubt", or "rejected" where its class says that nothing was sent. An exception of commit()
 * is "commit_in_doubt", also TransactionRolledBackException, which several providers throw whatever the broker did.
 * <li>Each line is one write at the end of the file. A line that cannot be written throws UncheckedIOException.
 * <li>Not recorded: JMSContext (createContext() is refused), browsers, XA sessions, expiry, dead letters, "drained": write that
 * line where you see that the queue is empty, {@link #write}.
 * </ul>
 */
public final class RecordingConnectionFactory {
    /** The property that has the message's own id. */
    public static final String ID = "ackfsm_message";
    /** The property of Qpid JMS by which acknowledge() says another outcome than accepted. */
    public static final String OUTCOME = "JMS_AMQP_ACK_TYPE";

    static final Path BOOT = Path.of("/proc/sys/kernel/random/boot_id");

    private static final Set<String> REFUSALS = Set.of("InvalidDestinationException", "InvalidDestinationRuntimeException",
        "JMSSecurityException", "MessageFormatException", "MessageNotWriteableException", "ResourceAllocationException");
    private static final String[] OUTCOMES = {null, null, "rejected", "released", "modified", "undeliverable"};
    private static final int CLIENT_ACKNOWLEDGE = 2;
    private static final int PERSISTENT = 2;
    /** The error code with which Artemis says that it has got another connection. */
    static final String GOES_ON = "FAILOVER";
    private static final Map<String, String> FAILOVER = Map.of("setFailoverListener", "FAILURE_DETECTED",
        "addConnectionListener", "onConnectionInterrupted", "addTransportListener", "transportInterupted",
        "setConnectionListener", "preFailover");

    private final History history;
    private final Options options;
    private final String process;
    private final Set<String> doubtful = ConcurrentHashMap.newKeySet();
    private static final AtomicInteger SESSIONS = new AtomicInteger();

    /** How the provider behaves. */
    public static final class Options {
        /** Whether acknowledge() returns only when the broker has answered. */
        public boolean acknowledgeWaits;
        /** Whether send() returns only when the broker has answered; if not, it writes no outcome. */
        public boolean sendWaits = true;
        /** The same of messages that are not persistent. */
        public boolean nonPersistentSendWaits = true;
        /** Whether a message keeps an id that it has; nobody may then send another message with that id. */
        public boolean keepIds;
        /** Who acts in a session, asked as it is made; null where all sessions are one process. */
        public Supplier<String> processOfSession;
        /** Called when a listener has returned, or thrown, and its lines are written. */
        public Runnable listenerReturned = () -> {
        };

        boolean waits(int deliveryMode) {
            return deliveryMode == PERSISTENT ? sendWaits : sendWaits && nonPersistentSendWaits;
        }
    }

    private RecordingConnectionFactory(History history, String process, Options options) {
        this.history = history;
        this.process = process;
        this.options = options;
    }

    /**
     * The same factory, recorded.
     *
     * @param file where the lines go, NAME.jsonl; it is begun, or gone on with. Give each JVM a file of its own in one folder.
     * @param process who acts, for example "billing"; sessions are named after it. Threads that use sessions of their own are told
     *     apart by their sessions.
     * @param config the settings of broker and clients as a JSON object, or null: {@code {"profile": "artemis", "ack_mode": ...}}
     */
    public static <T> T wrap(T factory, Path file, String process, String config) {
        return wrap(factory, file, process, config, new Options());
    }

    /** As above, for a provider that behaves otherwise. */
    @SuppressWarnings("unchecked")
    public static <T> T wrap(T factory, Path file, String process, String config, Options options) {
        RecordingConnectionFactory recorder = new RecordingConnectionFactory(new History(file, config), process, options);
        return (T) proxy(factory, recorder.new Factory(factory));
    }

    /** Write any line: {@code write(file, "broker", "drained", "queue", "orders")}; null values are left out. */
    public static void write(Path file, String process, String event, Object... namesAndValues) {
        try (History history = new History(file, null)) {
            history.write(process, event, namesAndValues);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    // Proxies

    /** An object of the provider; what is not recorded is passed on to it. */
    private abstract static class Passing implements InvocationHandler {
        final Object real;

        Passing(Object real) {
            this.real = real;
        }

        @Override
        public Object invoke(Object proxy, Method method, Object[] given) throws Throwable {
            Object[] args = given == null ? new Object[0] : given;
            if (method.getDeclaringClass() == Object.class) {
                return method.getName().equals("equals") ? real.equals(unwrapped(args[0])) : call(method, args);
            }
            return called(method, args);
        }

        abstract Object called(Method method, Object[] args) throws Throwable;

        Object call(Method method, Object[] args) throws Throwable {
            return invoked(method, real, args);
        }

        /** Call close(), and then tell of it. */
        Object closed(Method method, Object[] args, java.util.function.Consumer<Throwable> told) throws Throwable {
            try {
                Object result = call(method, args);
                told.accept(null);
                return result;
            } catch (Throwable error) {
                told.accept(error);
                throw error;
            }
        }
    }

    /** What a method gives or throws. */
    private static Object invoked(Method method, Object object, Object... args) throws Throwable {
        try {
            return method.invoke(object, args);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
    }

    private static Object ask(Object object, String name, Object... args) throws Throwable {
        return invoked(method(object, name, args.length), object, args);
    }

    private static Object proxy(Object real, Passing handler) {
        Set<Class<?>> faces = new LinkedHashSet<>();
        for (Class<?> each = real.getClass(); each != null; each = each.getSuperclass()) {
            addFaces(each, faces);
        }
        if (faces.isEmpty()) {
            throw new IllegalArgumentException(real.getClass().getName() + " is nothing of JMS; wrap a ConnectionFactory");
        }
        return Proxy.newProxyInstance(faces.iterator().next().getClassLoader(), faces.toArray(new Class<?>[0]), handler);
    }

    private static void addFaces(Class<?> type, Set<Class<?>> faces) {
        for (Class<?> each : type.getInterfaces()) {
            if (each.getName().startsWith("javax.jms.") || each.getName().startsWith("jakarta.jms.")) {
                faces.add(each);
            }
            addFaces(each, faces);
        }
    }

    private static Object unwrapped(Object object) {
        if (object != null && Proxy.isProxyClass(object.getClass())) {
            InvocationHandler handler = Proxy.getInvocationHandler(object);
            return handler instanceof Passing ? ((Passing) handler).real : object;
        }
        return object;
    }

    private final class Factory extends Passing {
        Factory(Object real) {
            super(real);
        }

        @Override
        Object called(Method method, Object[] args) throws Throwable {
            if (method.getName().equals("createContext")) {
                throw new UnsupportedOperationException("a JMSContext is not recorded; use createConnection()");
            }
            Object made = call(method, args);
            return is(made, "Connection") ? proxy(made, new Connection(made)) : made;
        }
    }

    private final class Connection extends Passing {
        private final List<Session> sessions = new CopyOnWriteArrayList<>();
        private volatile Object listener;
        private boolean listening;

        Connection(Object real) {
            super(real);
        }

        /** Listen to the library: before the first use, and after setClientID, which has to be the first call (JMS 6.1.2). */
        private synchronized void listen() throws Throwable {
            if (listening) {
                return;
            }
            listening = true;
            listens(method(real, "setExceptionListener", 1), (proxy, method, args) -> {
                Object code = args[0].getClass().getMethod("getErrorCode").invoke(args[0]);
                if (!GOES_ON.equals(code)) {
                    sessions.forEach(each -> each.closing((Throwable) args[0]));
                }
                return listener == null ? null : invoked(method, listener, args);
            });
            for (Method method : real.getClass().getMethods()) {
                String interrupted = FAILOVER.get(method.getName());
                if (interrupted != null && method.getParameterCount() == 1) {
                    listens(method, (proxy, told, args) -> {
                        String what = told.getName().equals("failoverEvent") ? args[0].toString() : told.getName();
                        if (what.equals(interrupted)) {
                            sessions.forEach(each -> each.broken("the library connects again"));
                        }
                        return told.getReturnType() == boolean.class ? true : null;
                    });
                }
            }
        }

        private void listens(Method set, InvocationHandler handler) throws Throwable {
            Class<?> face = set.getParameterTypes()[0];
            invoked(set, real, Proxy.newProxyInstance(face.getClassLoader(), new Class<?>[] {face}, (proxy, method, args) -> {
                if (method.getDeclaringClass() == Object.class) {
                    return method.getName().equals("equals") ? (Object) (proxy == args[0])
                        : method.getName().equals("hashCode") ? (Object) System.identityHashCode(proxy) : "recording";
                }
                return handler.invoke(proxy, method, args);
            }));
        }

        @Override
        Object called(Method method, Object[] args) throws Throwable {
            switch (method.getName()) {
                case "setExceptionListener":
                    listener = args[0];
                    return null;
                case "getExceptionListener":
                    return listener;
                case "setClientID":
                    return call(method, args);
                case "close":
                    sessions.forEach(Session::resting);
                    return closed(method, args, error -> sessions.forEach(each -> each.closing(error)));
                default:
                    listen();
                    Object made = call(method, args);
                    if (!is(made, "Session")) {
                        return made;
                    }
                    Session session = new Session(made);
                    sessions.add(session);
                    return proxy(made, session);
            }
        }
    }

    /** A message that the application has. */
    private static final class Delivery {
        final String message;
        final String queue;
        final String transaction;
        boolean told;
        /** Whether a listener works on it. */
        boolean held;
        /** Whether its session has started over since. */
        boolean recovered;

        Delivery(String message, String queue, String transaction) {
            this.message = message;
            this.queue = queue;
            this.transaction = transaction;
        }
    }

    private final class Session extends Passing {
        final String name;
        final String process;
        final boolean transacted;
        final int mode;
        private String transaction;
        private int transactions;
        private int consumers;
        private Delivery latest;
        private boolean closed;
        /** Whether the last line said that the connection broke. */
        private boolean broken;

        Session(Object real) throws Throwable {
            super(real);
            Supplier<String> of = options.processOfSession;
            process = of == null ? RecordingConnectionFactory.this.process : of.get();
            name = process + "." + ProcessHandle.current().pid() + "." + SESSIONS.incrementAndGet();
            transacted = (Boolean) ask(real, "getTransacted");
            mode = (Integer) ask(real, "getAcknowledgeMode");
        }

        @Override
        Object called(Method method, Object[] args) throws Throwable {
            switch (method.getName()) {
                case "commit":
                    return ending(method, args, "commit", "committed", "commit_in_doubt");
                case "rollback":
                    return ending(method, args, "rollback", "rolled_back", null);
                case "recover":
                    startsOver();
                    line("recover");
                    return call(method, args);
                case "close":
                    resting();
                    return closed(method, args, this::closing);
                default:
                    Object made = call(method, args);
                    if (is(made, "MessageProducer")) {
                        return proxy(made, new Producer(made, this, args.length == 0 ? null : args[0]));
                    }
                    return is(made, "MessageConsumer") ? proxy(made, new Consumer(made, this, args[0])) : made;
            }
        }

        private Object ending(Method method, Object[] args, String before, String after, String doubt) throws Throwable {
            if (doubt == null) {
                startsOver();
            } else {
                done();
            }
            String name = transaction;
            transaction = null;
            if (name == null) {
                return call(method, args);
            }
            line(before, "transaction", name);
            try {
                Object result = call(method, args);
                line(after, "transaction", name);
                return result;
            } catch (Throwable error) {
                if (doubt != null) {
                    line(doubt, "transaction", name, "error", text(error));
                }
                throw error;
            }
        }

        /** The open transaction, begun if there is none; null where the session has none. */
        String begun() {
            if (transacted && transaction == null) {
                transaction = name + ".t" + ++transactions;
                line("begin", "transaction", transaction);
            }
            return transaction;
        }

        Delivery delivered(Object message, Object destination, String consumer) throws Throwable {
            resting();
            Object id = ask(message, "getStringProperty", ID);
            if (id == null) {
                throw new IllegalStateException("a message of " + queue(destination) + " has no property " + ID
                    + ", so that nobody can say which one it is; record its producer as well");
            }
            Object count = null;
            if ((Boolean) ask(message, "propertyExists", "JMSXDeliveryCount")) {
                count = ask(message, "getIntProperty", "JMSXDeliveryCount");
            }
            Delivery delivery = new Delivery((String) id, queue(destination), begun());
            line("delivered", "message", delivery.message, "queue", delivery.queue, "consumer", consumer,
                "transaction", delivery.transaction, "redelivered", ask(message, "getJMSRedelivered"), "delivery_count", count);
            latest = delivery;
            return delivery;
        }

        /** The session commits: the work on its last message is done. */
        void done() {
            if (latest != null) {
                tell(latest, "processed", null);
            }
        }

        /** The session goes on: the work on a message that was received is done, and a listener tells by itself. */
        void resting() {
            if (latest != null && !latest.held) {
                done();
            }
        }

        private void startsOver() {
            resting();
            if (latest != null) {
                latest.recovered = true;
            }
        }

        void tell(Delivery delivery, String event, Throwable error) {
            if (!delivery.told) {
                delivery.told = true;
                line(event, "message", delivery.message, "queue", delivery.queue, "transaction", delivery.transaction,
                    "error", error == null ? null : text(error));
            }
        }

        synchronized void closing(Throwable error) {
            if (!closed) {
                closed = true;
                if (!broken || error == null) {
                    line("close", "transaction", transaction, "error", error == null ? null : text(error));
                }
            }
        }

        /** The library has lost the connection, and perhaps gets another one for the same session. */
        synchronized void broken(String error) {
            if (!closed && !broken) {
                line("close", "error", error);
                broken = true;
            }
        }

        void line(String event, Object... namesAndValues) {
            broken = false;
            List<Object> all = new ArrayList<>(List.of("session", name));
            Collections.addAll(all, namesAndValues);
            history.write(process, event, all.toArray());
        }
    }

    private final class Producer extends Passing {
        private final Session session;
        private final Object destination;

        Producer(Object real, Session session, Object destination) {
            super(real);
            this.session = session;
            this.destination = destination;
        }

        @Override
        Object called(Method method, Object[] args) throws Throwable {
            if (!method.getName().equals("send") && !method.getName().equals("publish")) {
                return call(method, args);
            }
            Object to = destination;
            Object mode = null;
            Object message = null;
            int completion = -1;
            for (int i = 0; i < args.length; i++) {
                args[i] = unwrapped(args[i]);
                if (is(args[i], "Message")) {
                    message = args[i];
                } else if (is(args[i], "Destination")) {
                    to = args[i];
                } else if (is(args[i], "CompletionListener")) {
                    completion = i;
                } else if (mode == null && args[i] instanceof Integer) {
                    mode = args[i];
                }
            }
            if (mode == null) {
                mode = ask(real, "getDeliveryMode");
            }
            String before = (String) ask(message, "getStringProperty", ID);
            boolean again = before != null && doubtful.remove(before);
            boolean kept = again || before != null && options.keepIds;
            String id = kept ? before : UUID.randomUUID().toString();
            if (!kept) {
                setId(message, id);
            }
            Object[] about = {"message", id, "queue", queue(to)};
            boolean transacted = session.begun() != null;
            session.line(again ? "resend" : "send", "message", id, "queue", queue(to), "transaction", session.transaction,
                "delivery_mode", mode.equals(PERSISTENT) ? "PERSISTENT" : "NON_PERSISTENT");
            if (completion >= 0) {
                args[completion] = completing(args[completion], id, about, transacted);
            }
            try {
                Object result = call(method, args);
                if (!transacted && completion < 0 && options.waits((Integer) mode)) {
                    session.line("confirmed", about);
                }
                return result;
            } catch (Throwable error) {
                if (!transacted) {
                    unsure(error, id, about);
                }
                throw error;
            }
        }

        private Object completing(Object listener, String id, Object[] about, boolean transacted) {
            Class<?> face = face(listener, "CompletionListener");
            return Proxy.newProxyInstance(face.getClassLoader(), new Class<?>[] {face}, (proxy, method, args) -> {
                if (!transacted && method.getName().equals("onCompletion")) {
                    session.line("confirmed", about);
                } else if (!transacted && method.getName().equals("onException")) {
                    unsure((Throwable) args[1], id, about);
                }
                return invoked(method, listener, args);
            });
        }

        private void unsure(Throwable error, String id, Object[] about) {
            boolean refused = refused(error);
            List<Object> all = new ArrayList<>(Arrays.asList(about));
            Collections.addAll(all, "error", text(error));
            session.line(refused ? "rejected" : "in_doubt", all.toArray());
            if (!refused) {
                doubtful.add(id);
            }
        }
    }

    private final class Consumer extends Passing {
        private final Session session;
        private final Object destination;
        private final String name;
        private Object listener;

        Consumer(Object real, Session session, Object destination) {
            super(real);
            this.session = session;
            this.destination = destination;
            name = session.name + ".c" + ++session.consumers;
        }

        @Override
        Object called(Method method, Object[] args) throws Throwable {
            switch (method.getName()) {
                case "receive":
                case "receiveNoWait":
                    session.resting();
                    Object message = call(method, args);
                    return message == null ? null : handed(message, session.delivered(message, destination, name));
                case "setMessageListener":
                    listener = args[0];
                    return call(method, new Object[] {listener == null ? null : listening(args[0])});
                case "getMessageListener":
                    return listener;
                case "close":
                    session.resting();
                    String from = queue(destination);
                    return closed(method, args, error -> {
                        if (error == null) {
                            session.line("close", "consumer", name, "queue", from);
                        }
                    });
                default:
                    return call(method, args);
            }
        }

        private Object handed(Object message, Delivery delivery) {
            return proxy(message, new Message(message, session, delivery));
        }

        private void returned(Delivery delivery) {
            if (delivery.recovered) {
                return; // it was given back meanwhile
            }
            session.tell(delivery, "processed", null);
            if (!session.transacted && (session.mode == 1 || session.mode == 3)) {
                session.line("acknowledge", "message", delivery.message, "queue", delivery.queue, "scope", "message");
            }
        }

        private Object listening(Object application) {
            Class<?> face = face(application, "MessageListener");
            return Proxy.newProxyInstance(face.getClassLoader(), new Class<?>[] {face}, (proxy, method, args) -> {
                if (!method.getName().equals("onMessage")) {
                    return invoked(method, application, args);
                }
                Delivery delivery = session.delivered(args[0], destination, name);
                delivery.held = true;
                try {
                    invoked(method, application, handed(args[0], delivery));
                    returned(delivery);
                    return null;
                } catch (Throwable error) {
                    session.tell(delivery, "failed", error);
                    throw error;
                } finally {
                    options.listenerReturned.run();
                }
            });
        }
    }

    private final class Message extends Passing {
        private final Session session;
        private final Delivery delivery;

        Message(Object real, Session session, Delivery delivery) {
            super(real);
            this.session = session;
            this.delivery = delivery;
        }

        @Override
        Object called(Method method, Object[] args) throws Throwable {
            boolean acknowledging = method.getName().equals("acknowledge") && !session.transacted
                && (session.mode == CLIENT_ACKNOWLEDGE || session.mode > 3);
            if (!acknowledging) {
                return call(method, args);
            }
            Object[] about = session.mode == CLIENT_ACKNOWLEDGE
                ? new Object[] {"scope", "session"}
                : new Object[] {"scope", "message", "message", delivery.message, "queue", delivery.queue};
            boolean said = (Boolean) ask(real, "propertyExists", OUTCOME);
            String outcome = said ? OUTCOMES[(Integer) ask(real, "getIntProperty", OUTCOME)] : null;
            if (outcome != null) {
                return settled(method, args, outcome);
            }
            session.tell(delivery, "processed", null);
            session.line("acknowledge", about);
            try {
                Object result = call(method, args);
                if (options.acknowledgeWaits) {
                    session.line("acknowledged", about);
                }
                return result;
            } catch (Throwable error) {
                List<Object> all = new ArrayList<>(Arrays.asList(about));
                Collections.addAll(all, "error", text(error));
                session.line("ack_in_doubt", all.toArray());
                throw error;
            }
        }

        /** Give the message back or up by {@code outcome}; in CLIENT_ACKNOWLEDGE all that the session has. */
        private Object settled(Method method, Object[] args, String outcome) throws Throwable {
            Object result = call(method, args);
            delivery.told = true;
            session.line("failed", "message", delivery.message, "queue", delivery.queue, "outcome", outcome,
                "scope", session.mode == CLIENT_ACKNOWLEDGE ? "session" : null);
            return result;
        }
    }

    /** Whether an exception of send() says that nothing was sent. */
    static boolean refused(Throwable error) {
        return REFUSALS.contains(error.getClass().getSimpleName());
    }

    // Reflection

    private static boolean is(Object object, String face) {
        return object != null && face(object, face) != null;
    }

    private static Class<?> face(Object object, String name) {
        Set<Class<?>> faces = new LinkedHashSet<>();
        for (Class<?> each = object.getClass(); each != null; each = each.getSuperclass()) {
            addFaces(each, faces);
        }
        return faces.stream().filter(each -> each.getSimpleName().equals(name)).findFirst().orElse(null);
    }

    /** A method of an interface of JMS that the object has. */
    private static Method method(Object object, String name, int parameters) {
        Set<Class<?>> faces = new LinkedHashSet<>();
        for (Class<?> each = object.getClass(); each != null; each = each.getSuperclass()) {
            addFaces(each, faces);
        }
        for (Class<?> face : faces) {
            for (Method method : face.getMethods()) {
                if (method.getName().equals(name) && method.getParameterCount() == parameters) {
                    return method;
                }
            }
        }
        throw new IllegalStateException(object.getClass().getName() + " has no " + name + "()");
    }

    private static String queue(Object destination) throws Throwable {
        if (destination == null) {
            return null;
        }
        String word = is(destination, "Queue") ? "getQueueName" : "getTopicName";
        return (String) ask(destination, word);
    }

    /** The properties of a message that was received are read-only: they are taken out and put in again. */
    private static void setId(Object message, String id) throws Throwable {
        try {
            ask(message, "setStringProperty", ID, id);
        } catch (Throwable error) {
            if (!error.getClass().getSimpleName().equals("MessageNotWriteableException")) {
                throw error;
            }
            Map<String, Object> kept = new LinkedHashMap<>();
            for (Object name : Collections.list((Enumeration<?>) ask(message, "getPropertyNames"))) {
                if (!name.toString().startsWith("JMSX")) {
                    kept.put(name.toString(), ask(message, "getObjectProperty", name));
                }
            }
            kept.put(ID, id);
            ask(message, "clearProperties");
            for (Map.Entry<String, Object> each : kept.entrySet()) {
                ask(message, "setObjectProperty", each.getKey(), each.getValue());
            }
        }
    }

    private static String text(Throwable error) {
        String said = error.getClass().getSimpleName() + (error.getMessage() == null ? "" : ": " + error.getMessage());
        return said.substring(0, Math.min(500, said.length()));
    }

    // The file

    /** Lines at the end of a file, each by one write, from nobody's buffer. */
    private static final class History implements Closeable {
        private static final Pattern CLOCK = Pattern.compile("\"clock\": *\\{\"offset\": *(\\d+), *\"boot\": *\"([^\"]+)\"}");

        private final FileChannel channel;
        private final long offset;

        History(Path file, String config) {
            try {
                channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
                String boot = boot();
                Instant now = Instant.now();
                long anchored = now.getEpochSecond() * 1_000_000_000L + now.getNano() - System.nanoTime();
                FileLock lock = channel.lock();
                try {
                    if (Files.size(file) == 0) {
                        offset = anchored;
                        append("{\"ackfsm_history\":1," + (config == null ? "" : "\"config\":" + config.replace("\n", " ") + ",")
                            + "\"clock\":{\"offset\":" + offset + ",\"boot\":\"" + boot + "\"}}");
                    } else {
                        Matcher told = CLOCK.matcher(first(file));
                        offset = told.find() && told.group(2).equals(boot) ? Long.parseLong(told.group(1)) : anchored;
                    }
                } finally {
                    lock.release();
                }
            } catch (IOException error) {
                throw new UncheckedIOException(file + " cannot be recorded to", error);
            }
        }

        @Override
        public void close() throws IOException {
            channel.close();
        }

        private static String first(Path file) throws IOException {
            try (BufferedReader reader = Files.newBufferedReader(file)) {
                return reader.readLine();
            }
        }

        /** What tells this start of the machine from others, where the system says it; nanoTime() counts from it there. */
        private static String boot() throws IOException {
            return Files.exists(BOOT) ? Files.readString(BOOT).trim() : UUID.randomUUID().toString();
        }

        void write(String process, String event, Object... namesAndValues) {
            StringBuilder line = new StringBuilder("{\"t\":").append(System.nanoTime() + offset);
            line.append(",\"process\":").append(quoted(process)).append(",\"event\":").append(quoted(event));
            for (int i = 0; i < namesAndValues.length; i += 2) {
                Object value = namesAndValues[i + 1];
                if (value != null) {
                    line.append(',').append(quoted((String) namesAndValues[i])).append(':');
                    line.append(value instanceof String ? quoted((String) value) : value.toString());
                }
            }
            try {
                append(line.append('}').toString());
            } catch (IOException error) {
                throw new UncheckedIOException("a line is missing in the history", error);
            }
        }

        private synchronized void append(String line) throws IOException {
            ByteBuffer bytes = ByteBuffer.wrap((line + "\n").getBytes(StandardCharsets.UTF_8));
            while (bytes.hasRemaining()) {
                channel.write(bytes);
            }
        }

        private static String quoted(String text) {
            StringBuilder out = new StringBuilder("\"");
            for (char each : text.toCharArray()) {
                if (each == '"' || each == '\\') {
                    out.append('\\').append(each);
                } else if (each < ' ' || each > '~') {
                    out.append(String.format("\\u%04x", (int) each));
                } else {
                    out.append(each);
                }
            }
            return out.append('"').toString();
        }
    }
}

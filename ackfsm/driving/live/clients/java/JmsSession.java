import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.jms.BytesMessage;
import javax.jms.CompletionListener;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.Topic;

/** One session, and what it is told to do. */
final class JmsSession {
    private static final int PERSISTENT = 2;
    private static final int PRIORITY = 4;
    private static final Set<String> OF_WHAT_IT_WAS_HANDED = Set.of("acknowledge", "settle", "commit", "rollback", "recover");

    final Lane lane;
    private final Worker worker;
    private final Worker.Link link;
    private final Map<String, MessageConsumer> consumers = new HashMap<>();
    private final Map<String, Destination> destinations = new HashMap<>();
    private final Map<Destination, MessageProducer> producers = new HashMap<>();
    private final Map<String, Message> held = new HashMap<>();
    private final Map<String, BlockingQueue<Map<String, Object>>> calls = new ConcurrentHashMap<>();
    private Session session;
    private boolean closed;

    JmsSession(Worker worker, Worker.Link link, Map<String, Object> command) {
        this.worker = worker;
        this.link = link;
        lane = new Lane((String) command.get("session"), each -> worker.answering(each, () -> performed(each)));
        lane.add(command);
    }

    private Map<String, Object> performed(Map<String, Object> command) throws Exception {
        if (link == null || closed) {
            throw new Worker.Failure("closed", "there is no such session");
        }
        link.check();
        if (OF_WHAT_IT_WAS_HANDED.contains(command.get("op")) && calls.values().stream().anyMatch(each -> !each.isEmpty())) {
            throw new Worker.Failure("refused", "the listener was called with a message that was not asked for yet");
        }
        switch ((String) command.get("op")) {
            case "session":
                return made(command);
            case "consumer":
                consume(command);
                return Map.of();
            case "send":
                return sent(command);
            case "receive":
                return received(command);
            case "acknowledge":
                return acknowledged(command, held(command));
            case "settle":
                settle(command, held(command));
                return Map.of();
            case "commit":
                return committed();
            case "rollback":
                held.clear();
                session.rollback();
                return Map.of();
            case "recover":
                held.clear();
                session.recover();
                return Map.of();
            case "close":
                close((String) command.get("consumer"));
                return Map.of();
            default:
                throw new Worker.Failure("refused", "there is no such command, or no listener that holds the message");
        }
    }

    private Map<String, Object> made(Map<String, Object> command) throws JMSException {
        String mode = (String) command.get("ack_mode");
        Object number = Json.strings(worker.client.get("modes")).get(mode);
        if (number == null) {
            throw new Worker.Failure("refused", "the library has no mode " + mode);
        }
        String process = worker.process + "." + command.get("session");
        worker.making.set(process);
        boolean transacted = mode.equals("SESSION_TRANSACTED");
        session = link.connection.createSession(transacted, ((Long) number).intValue());
        return Worker.fields("process", process);
    }

    // What it is told to do

    private void consume(Map<String, Object> command) throws Exception {
        String name = (String) command.get("consumer");
        String subscription = (String) command.get("subscription");
        MessageConsumer consumer =
            subscription == null ? session.createConsumer(destination(command)) : subscribed(command, subscription);
        consumers.put(name, consumer);
        if (is(command, "listener")) {
            calls.put(name, new LinkedBlockingQueue<>());
            consumer.setMessageListener(message -> listen(name, message));
        }
    }

    private MessageConsumer subscribed(Map<String, Object> command, String subscription) throws Exception {
        Topic topic = (Topic) destination(command);
        if (is(command, "shared")) {
            return session.createSharedDurableConsumer(topic, subscription);
        }
        return Worker.patiently(() -> session.createDurableSubscriber(topic, subscription));
    }

    private Map<String, Object> sent(Map<String, Object> command) throws JMSException {
        boolean asynchronous = is(command, "asynchronous");
        if (asynchronous && !is(worker.client, "asynchronous")) {
            throw new Worker.Failure("refused", "the library has no CompletionListener");
        }
        Destination to = destination(command);
        if (!producers.containsKey(to)) {
            producers.put(to, session.createProducer(to));
        }
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(new byte[((Long) command.getOrDefault("size", 0L)).intValue()]);
        message.setStringProperty(RecordingConnectionFactory.ID, (String) command.get("message"));
        int mode = "NON_PERSISTENT".equals(command.get("delivery_mode")) ? 1 : PERSISTENT;
        boolean waits = worker.options.waits(mode) && !session.getTransacted();
        try {
            if (asynchronous) {
                producers.get(to).send(message, mode, PRIORITY, 0, completion(command));
                return null;
            }
            producers.get(to).send(message, mode, PRIORITY, 0);
            return outcome(waits ? "confirmed" : "sent", null);
        } catch (JMSException | RuntimeException error) {
            return failed(error);
        }
    }

    private CompletionListener completion(Map<String, Object> command) throws JMSException {
        String completed = session.getTransacted() ? "sent" : "confirmed";
        return new CompletionListener() {
            @Override
            public void onCompletion(Message message) {
                worker.answer(command, outcome(completed, null));
            }

            @Override
            public void onException(Message message, Exception error) {
                worker.answer(command, failed(error));
            }
        };
    }

    private Map<String, Object> received(Map<String, Object> command) throws JMSException {
        MessageConsumer consumer = consumer(command.get("consumer"));
        long timeout = milliseconds(command);
        Message message = timeout == 0 ? consumer.receiveNoWait() : consumer.receive(timeout);
        if (message == null) {
            link.check();
            return Worker.fields("message", null, "redelivered", null, "delivery_count", null);
        }
        return kept(message);
    }

    private Map<String, Object> kept(Message message) throws JMSException {
        String id = message.getStringProperty(RecordingConnectionFactory.ID);
        held.put(id, message);
        Object count = message.propertyExists("JMSXDeliveryCount") ? message.getIntProperty("JMSXDeliveryCount") : null;
        return Worker.fields("message", id, "redelivered", message.getJMSRedelivered(), "delivery_count", count);
    }

    private void listen(String consumer, Message message) {
        Map<String, Object> told;
        try {
            told = kept(message);
        } catch (JMSException error) {
            throw new IllegalStateException(error);
        }
        lane.hold();
        calls.get(consumer).add(told);
        Object id = told.get("message");
        Map<String, Object> done = lane.until(each -> "done".equals(each.get("op")) && id.equals(each.get("message")));
        worker.returning.set(() -> {
            lane.release();
            worker.answer(done, Map.of());
        });
        if (is(done, "failed")) {
            throw new IllegalStateException("the listener throws, as it was told to");
        }
    }

    /** The next message with which a listener was called; asked in any thread. */
    Map<String, Object> listened(Map<String, Object> command) throws InterruptedException {
        BlockingQueue<Map<String, Object>> called = calls.get(command.get("consumer"));
        if (called == null) {
            throw new Worker.Failure("refused", "the consumer has no listener");
        }
        Map<String, Object> told = called.poll(milliseconds(command), TimeUnit.MILLISECONDS);
        if (told == null) {
            link.check();
        }
        return told == null ? Worker.fields("message", null, "redelivered", null, "delivery_count", null) : told;
    }

    private Map<String, Object> acknowledged(Map<String, Object> command, Message message) {
        try {
            message.acknowledge();
            return outcome(worker.options.acknowledgeWaits ? "acknowledged" : "sent", null);
        } catch (JMSException error) {
            return outcome("in_doubt", error);
        }
    }

    private void settle(Map<String, Object> command, Message message) throws JMSException {
        Object number = Json.strings(worker.client.get("outcomes")).get((String) command.get("outcome"));
        if (number == null) {
            throw new Worker.Failure("refused", "the library has no such outcome");
        }
        message.setIntProperty(RecordingConnectionFactory.OUTCOME, ((Long) number).intValue());
        message.acknowledge();
    }

    private Map<String, Object> committed() {
        held.clear();
        try {
            session.commit();
            return outcome("committed", null);
        } catch (JMSException error) {
            return outcome("in_doubt", error);
        }
    }

    private void close(String consumer) throws JMSException {
        if (consumer != null) {
            consumer(consumer).close();
            consumers.remove(consumer);
            return;
        }
        if (lane.held()) {
            throw new Worker.Failure("refused", "the listener holds a message, and close() would wait for it");
        }
        closed = true;
        lane.close();
        session.close();
    }

    // Words

    private Map<String, Object> outcome(String outcome, Throwable error) {
        return error == null ? Worker.fields("outcome", outcome) : Worker.fields("outcome", outcome, "why", error.toString());
    }

    private Map<String, Object> failed(Throwable error) {
        return outcome(RecordingConnectionFactory.refused(error) ? "rejected" : "in_doubt", error);
    }

    private MessageConsumer consumer(Object name) {
        if (!consumers.containsKey(name)) {
            throw new Worker.Failure("closed", "the session has no consumer " + name);
        }
        return consumers.get(name);
    }

    private Message held(Map<String, Object> command) {
        Message message = held.get(command.get("message"));
        if (message == null) {
            throw new Worker.Failure("refused", "the session does not hold the message");
        }
        return message;
    }

    private Destination destination(Map<String, Object> command) throws JMSException {
        String name = ((String) worker.client.get("queue")).replace("{}", (String) command.get("destination"));
        if (!destinations.containsKey(name)) { // some libraries ask the broker whether it is there
            destinations.put(name, is(command, "topic") ? session.createTopic(name) : session.createQueue(name));
        }
        return destinations.get(name);
    }

    private static boolean is(Map<String, Object> command, String flag) {
        return Boolean.TRUE.equals(command.get(flag));
    }

    private static long milliseconds(Map<String, Object> command) {
        return Math.round(((Number) command.get("timeout")).doubleValue() * 1000);
    }
}

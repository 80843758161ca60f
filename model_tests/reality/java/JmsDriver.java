import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import javax.jms.BytesMessage;
import javax.jms.CompletionListener;
import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * Sends or receives for some seconds with Artemis' own client (a URL that begins with tcp:) or with Qpid JMS (amqp:).
 *
 * <p>It speaks the protocol of the workers of ackfsm live. A command is one run, and its answer has the messages and
 * seconds of the steady part, and the messages of the whole run. What is counted are the messages whose outcome is known:
 * confirmed, committed, acknowledged. One process does all runs, so that its code is compiled after the first.
 */
public final class JmsDriver {
    private static final int PATIENCE = 20_000;

    private final Map<String, Object> run;
    private final Meter meter;

    private JmsDriver(Map<String, Object> run) {
        this.run = run;
        this.meter = new Meter(number("warm_up"), number("seconds"), (long) number("messages"));
    }

    public static void main(String[] args) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            Map<String, Object> run = Json.object(line);
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("id", run.get("id"));
            try {
                answer.putAll(new JmsDriver(run).result());
            } catch (JMSException | RuntimeException error) {
                error.printStackTrace();
                answer.put("error", "refused");
                answer.put("why", String.valueOf(error));
            }
            System.out.println(Json.written(answer));
        }
    }

    private Map<String, Object> result() throws Exception {
        String url = text("url");
        ConnectionFactory factory = url.startsWith("tcp:") ? new ActiveMQConnectionFactory(url) : new JmsConnectionFactory(url);
        try (Connection connection = factory.createConnection()) {
            connection.start();
            switch (text("what")) {
                case "blocking" -> blocking(connection);
                case "window" -> window(connection);
                case "transaction" -> transaction(connection);
                case "consume" -> consume(connection);
                default -> throw new IllegalArgumentException("what is to be done?");
            }
        }
        return Map.of("messages", meter.messages(), "seconds", meter.seconds(), "total", meter.total());
    }

    private void blocking(Connection connection) throws JMSException {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = producer(session);
        Message message = message(session);
        while (meter.goesOn()) {
            producer.send(message);
            meter.count(1);
        }
    }

    private void window(Connection connection) throws Exception {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = producer(session);
        int window = (int) number("window");
        Semaphore free = new Semaphore(window);
        CompletionListener listener = new CompletionListener() {
            @Override
            public void onCompletion(Message message) {
                meter.count(1);
                free.release();
            }

            @Override
            public void onException(Message message, Exception error) {
                error.printStackTrace(); // never released: the run ends with an error
            }
        };
        long most = (long) number("messages");
        for (long sent = 0; meter.goesOn() && (most == 0 || sent < most); sent++) {
            acquire(free, 1);
            producer.send(message(session), listener); // a message of its own: one under way must not be used again
        }
        acquire(free, window);
    }

    private static void acquire(Semaphore free, int number) throws Exception {
        if (!free.tryAcquire(number, PATIENCE, TimeUnit.MILLISECONDS)) {
            throw new IllegalStateException("a send does not complete");
        }
    }

    private void transaction(Connection connection) throws JMSException {
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = producer(session);
        Message message = message(session);
        int batch = (int) number("batch");
        while (meter.goesOn()) {
            for (int i = 0; i < batch; i++) {
                producer.send(message);
            }
            session.commit();
            meter.count(batch);
        }
    }

    private void consume(Connection connection) throws JMSException {
        int mode = (int) number("ack_mode");
        int batch = (int) number("batch");
        boolean transacted = mode == Session.SESSION_TRANSACTED;
        Session session = connection.createSession(transacted, mode);
        MessageConsumer consumer = session.createConsumer(session.createQueue(text("queue")));
        int held = 0;
        while (meter.goesOn()) {
            Message message = consumer.receive(PATIENCE);
            if (message == null) {
                throw new IllegalStateException("nothing is received");
            }
            if (++held < batch) {
                continue;
            }
            if (transacted) {
                session.commit();
            } else if (mode == Session.CLIENT_ACKNOWLEDGE || mode == ActiveMQ.INDIVIDUAL) {
                message.acknowledge();
            }
            meter.count(held);
            held = 0;
        }
    }

    private MessageProducer producer(Session session) throws JMSException {
        MessageProducer producer = session.createProducer(session.createQueue(text("queue")));
        producer.setDeliveryMode(Boolean.TRUE.equals(run.get("persistent")) ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
        return producer;
    }

    private Message message(Session session) throws JMSException {
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(new byte[(int) number("size")]);
        return message;
    }

    private double number(String name) {
        return ((Number) run.get(name)).doubleValue();
    }

    private String text(String name) {
        return (String) run.get(name);
    }

    /** Modes that are no part of JMS; both clients have this one. */
    private static final class ActiveMQ {
        private static final int INDIVIDUAL = 101;
    }

    /** Counts messages from one outcome after the warm-up to one after the seconds are over, or to the last message. */
    private static final class Meter {
        private final long warmUp;
        private final long steady;
        private final long most;
        private final long begun = System.nanoTime();
        private long total;
        private long first;
        private long firstAt;
        private long last;
        private long lastAt;

        Meter(double warmUp, double seconds, long most) {
            this.warmUp = (long) (warmUp * 1e9);
            this.steady = (long) (seconds * 1e9);
            this.most = most;
        }

        /** Whether there is more to do; most is 0 where there is no end but of time. */
        synchronized boolean goesOn() {
            boolean over = lastAt != 0 && lastAt - firstAt >= steady;
            return !over && (most == 0 || total < most);
        }

        synchronized void count(int messages) {
            long now = System.nanoTime();
            total += messages;
            if (firstAt == 0) {
                if (now - begun >= warmUp) {
                    first = total;
                    firstAt = now;
                }
            } else if (lastAt == 0 || lastAt - firstAt < steady) {
                last = total;
                lastAt = now;
            }
        }

        synchronized long messages() {
            return last - first;
        }

        synchronized double seconds() {
            return (lastAt - firstAt) / 1e9;
        }

        synchronized long total() {
            return total;
        }
    }
}

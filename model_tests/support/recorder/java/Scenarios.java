import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.CompletionListener;
import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;

/** What applications of JMS do, each with a history of its own: java Scenarios URL FOLDER. After a line the broker ends. */
public final class Scenarios {
    private static String url;
    private static Path folder;

    public static void main(String[] args) throws Exception {
        url = args[0];
        folder = Path.of(args[1]);
        try {
            client();
            listener();
            transacted();
            individual();
            completion();
            broken();
            System.exit(0);
        } catch (Throwable error) {
            error.printStackTrace();
            System.exit(1); // the client's threads would go on
        }
    }

    private interface Part {
        void run(Connection connection) throws Exception;
    }

    private static void recorded(String queue, String config, String parameters, Part part) throws Exception {
        Path file = folder.resolve(queue + ".jsonl");
        RecordingConnectionFactory.Options options = new RecordingConnectionFactory.Options();
        options.acknowledgeWaits = true;
        ConnectionFactory factory = RecordingConnectionFactory.wrap(
            (ConnectionFactory) new ActiveMQConnectionFactory(url + "?blockOnAcknowledge=true&" + parameters), file, "app",
            "{\"profile\": \"artemis\", \"send_mode\": \"blocking\", \"block_on_acknowledge\": true, " + config + "}", options);
        try (Connection connection = factory.createConnection()) {
            connection.start();
            part.run(connection);
        }
        RecordingConnectionFactory.write(file, "broker", "drained", "queue", queue);
    }

    private static void send(Connection connection, String queue, int messages) throws Exception {
        try (Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                MessageProducer producer = session.createProducer(session.createQueue(queue))) {
            for (int i = 0; i < messages; i++) {
                producer.send(session.createTextMessage("order " + i));
            }
        }
    }

    private static void expect(boolean held, String what) {
        if (!held) {
            throw new IllegalStateException(what);
        }
    }

    private static void client() throws Exception {
        recorded("client", "\"ack_mode\": \"CLIENT_ACKNOWLEDGE\", \"prefetch\": 1, \"consumption\": \"receive\"", "consumerWindowSize=0", connection -> {
            send(connection, "client", 4);
            Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
            MessageConsumer consumer = session.createConsumer(session.createQueue("client"));
            TextMessage first = (TextMessage) consumer.receive(5000);
            expect(first.getText().equals("order 0"), "the first order");
            first.acknowledge();
            consumer.receive(5000);
            session.recover();
            for (int i = 1; i < 4; i++) {
                Message message = consumer.receive(5000);
                expect(message.getJMSRedelivered() == (i == 1), "the second order is flagged");
                if (i == 3) {
                    message.acknowledge();
                }
            }
            expect(consumer.receiveNoWait() == null, "nothing is left");
        });
    }

    private static void listener() throws Exception {
        recorded("listener", "\"ack_mode\": \"AUTO_ACKNOWLEDGE\", \"consumption\": \"listener\"", "", connection -> {
            send(connection, "listener", 3);
            CountDownLatch left = new CountDownLatch(4);
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            session.createConsumer(session.createQueue("listener")).setMessageListener(message -> {
                left.countDown();
                if (left.getCount() == 2) {
                    throw new IllegalArgumentException("no such order");
                }
            });
            expect(left.await(10, TimeUnit.SECONDS), "three messages, one of them twice");
            Thread.sleep(200);
        });
    }

    private static void transacted() throws Exception {
        recorded("transacted", "\"ack_mode\": \"SESSION_TRANSACTED\", \"consumption\": \"receive\"", "", connection -> {
            Session sending = connection.createSession(true, Session.SESSION_TRANSACTED);
            MessageProducer producer = sending.createProducer(null);
            producer.send(sending.createQueue("transacted"), sending.createMessage());
            producer.send(sending.createQueue("transacted"), sending.createMessage());
            sending.commit();
            producer.send(sending.createQueue("transacted"), sending.createMessage());
            sending.rollback();
            Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
            MessageConsumer consumer = session.createConsumer(session.createQueue("transacted"));
            consumer.receive(5000);
            consumer.receive(5000);
            session.rollback();
            consumer.receive(5000);
            consumer.receive(5000);
            session.commit();
        });
    }

    private static void individual() throws Exception {
        recorded("individual", "\"ack_mode\": \"INDIVIDUAL_ACKNOWLEDGE\", \"consumption\": \"receive\"", "", connection -> {
            send(connection, "individual", 3);
            Session session = connection.createSession(false, 101);
            MessageConsumer consumer = session.createConsumer(session.createQueue("individual"));
            List<Message> messages = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                messages.add(consumer.receive(5000));
            }
            messages.get(2).acknowledge();
            messages.get(0).acknowledge();
            messages.get(1).acknowledge();
            // A received message is sent on: it is a new one, with its properties.
            Message forwarded = messages.get(0);
            session.createProducer(session.createQueue("forwarded")).send(forwarded);
            session.createConsumer(session.createQueue("forwarded")).receive(5000).acknowledge();
        });
        RecordingConnectionFactory.write(folder.resolve("individual.jsonl"), "broker", "drained", "queue", "forwarded");
    }

    private static void completion() throws Exception {
        recorded("completion", "\"ack_mode\": \"AUTO_ACKNOWLEDGE\", \"consumption\": \"receive\"",
            "confirmationWindowSize=1048576", connection -> {
                Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                CountDownLatch completed = new CountDownLatch(2);
                CompletionListener listener = new CompletionListener() {
                    @Override
                    public void onCompletion(Message message) {
                        completed.countDown();
                    }

                    @Override
                    public void onException(Message message, Exception error) {
                        error.printStackTrace();
                    }
                };
                MessageProducer producer = session.createProducer(session.createQueue("completion"));
                producer.send(session.createMessage(), listener);
                producer.send(session.createMessage(), listener);
                expect(completed.await(10, TimeUnit.SECONDS), "both sends complete");
                MessageConsumer consumer = session.createConsumer(session.createQueue("completion"));
                consumer.receive(5000);
                consumer.receive(5000);
            });
    }

    private static void broken() throws Exception {
        recorded("broken", "\"ack_mode\": \"CLIENT_ACKNOWLEDGE\", \"consumption\": \"receive\"", "reconnectAttempts=0", connection -> {
            Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
            MessageProducer producer = session.createProducer(session.createQueue("broken"));
            Message message = session.createMessage();
            producer.send(message);
            CountDownLatch lost = new CountDownLatch(1);
            connection.setExceptionListener(error -> lost.countDown());
            System.out.println("the broker may end");
            expect(lost.await(10, TimeUnit.SECONDS), "the listener of the application is called");
            try {
                producer.send(message);
                expect(false, "nothing can be sent");
            } catch (JMSException error) {
                expect(connection.getExceptionListener() != null, "the listener is the application's");
            }
        });
    }
}

import java.nio.file.Path;
import java.util.List;
import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.core.server.ActiveMQServer;
import org.apache.activemq.artemis.core.server.Queue;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;

/** Artemis by a configuration file, asked by lines at a port. */
public final class ArtemisServer {
    public static void main(String[] args) throws Exception {
        EmbeddedActiveMQ embedded = new EmbeddedActiveMQ();
        embedded.setConfigResourcePath(Path.of(args[0]).toUri().toString());
        embedded.start();
        ActiveMQServer server = embedded.getActiveMQServer();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(embedded)));
        Asked.listen(Integer.parseInt(args[1]), words -> answer(server, words));
    }

    private static void stop(EmbeddedActiveMQ embedded) {
        try {
            embedded.stop();
        } catch (Exception error) {
            error.printStackTrace();
        }
    }

    private static String answer(ActiveMQServer server, String[] words) throws Exception {
        switch (words[0]) {
            case "serves":
                return String.valueOf(server.isActive());
            case "queue":
                return made(server, words[1], RoutingType.ANYCAST);
            case "durable_subscription": // a client has made it
                return String.valueOf(only(server, words[1]));
            case "shared_durable_subscription":
                return made(server, words[1], RoutingType.MULTICAST);
            case "remove":
                server.destroyQueue(SimpleString.of(words[1]), null, false);
                return "done";
            case "depth":
                return depth(server.locateQueue(only(server, words[1])));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static String made(ActiveMQServer server, String name, RoutingType routing) throws Exception {
        server.createQueue(QueueConfiguration.of(name).setRoutingType(routing).setDurable(true), true);
        return "done";
    }

    /** The one queue at an address: that of its name, or of the subscription to the topic. */
    private static SimpleString only(ActiveMQServer server, String address) throws Exception {
        List<SimpleString> found = server.bindingQuery(SimpleString.of(address)).getQueueNames();
        if (found.size() != 1) {
            throw new IllegalArgumentException("at " + address + " there are the queues " + found);
        }
        return found.get(0);
    }

    private static String depth(Queue queue) {
        long held = queue.getDeliveringCount();
        return (queue.getMessageCount() - held) + " " + held;
    }
}

import java.nio.file.Path;
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
                QueueConfiguration queue = QueueConfiguration.of(words[1]).setRoutingType(RoutingType.ANYCAST).setDurable(true);
                server.createQueue(queue, true);
                return "done";
            case "remove":
                server.destroyQueue(SimpleString.of(words[1]), null, false);
                return "done";
            case "depth":
                Queue found = server.locateQueue(words[1]);
                if (found == null) {
                    throw new IllegalArgumentException("there is no queue " + words[1]);
                }
                long held = found.getDeliveringCount();
                return (found.getMessageCount() - held) + " " + held;
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }
}

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Path;
import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.core.server.ActiveMQServer;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;

/** A broker whose queues are made and removed by lines of the input: create NAME, remove NAME. It ends with the input. */
public final class ArtemisServer {
    public static void main(String[] args) throws Exception {
        EmbeddedActiveMQ embedded = new EmbeddedActiveMQ();
        embedded.setConfigResourcePath(Path.of(args[0]).toUri().toString());
        embedded.start();
        System.out.println("serves");
        ActiveMQServer server = embedded.getActiveMQServer();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("create")) {
                server.createQueue(QueueConfiguration.of(words[1]).setRoutingType(RoutingType.ANYCAST).setDurable(true));
            } else {
                server.destroyQueue(SimpleString.of(words[1]), null, false);
            }
            System.out.println("done");
        }
        Runtime.getRuntime().halt(0);
    }
}

import java.io.File;
import java.util.Objects;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.region.DestinationStatistics;
import org.apache.activemq.broker.region.DurableTopicSubscription;
import org.apache.activemq.broker.region.RegionBroker;
import org.apache.activemq.broker.region.TopicRegion;
import org.apache.activemq.broker.region.policy.PolicyEntry;
import org.apache.activemq.broker.region.policy.PolicyMap;
import org.apache.activemq.broker.region.policy.SharedDeadLetterStrategy;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.store.kahadb.KahaDBPersistenceAdapter;
import org.apache.activemq.util.IntrospectionSupport;

/** ActiveMQ over KahaDB, asked by lines at a port. Arguments: folder, ports of OpenWire, STOMP and lines, NAME=VALUE. */
public final class ActiveMqServer {
    public static void main(String[] args) throws Exception {
        KahaDBPersistenceAdapter store = new KahaDBPersistenceAdapter();
        store.setDirectory(new File(args[0]));
        SharedDeadLetterStrategy deadLetters = new SharedDeadLetterStrategy();
        PolicyEntry policy = new PolicyEntry();
        policy.setDeadLetterStrategy(deadLetters);
        BrokerService broker = new BrokerService();
        broker.setPersistenceAdapter(store);
        for (int i = 4; i < args.length; i++) {
            set(args[i].split("=", 2), store, policy, deadLetters, broker);
        }
        PolicyMap policies = new PolicyMap();
        policies.setDefaultEntry(policy);
        broker.setDestinationPolicy(policies);
        broker.setUseJmx(false);
        broker.addConnector("tcp://127.0.0.1:" + args[1]);
        broker.addConnector("stomp://127.0.0.1:" + args[2]);
        broker.start();
        broker.waitUntilStarted();
        Asked.listen(Integer.parseInt(args[3]), words -> answer(broker, words));
    }

    private static void set(String[] setting, Object... places) {
        for (Object place : places) {
            if (IntrospectionSupport.setProperty(place, setting[0], setting[1])) {
                return;
            }
        }
        throw new IllegalArgumentException("nothing has " + setting[0]);
    }

    private static String answer(BrokerService broker, String[] words) throws Exception {
        switch (words[0]) {
            case "serves":
                return String.valueOf(broker.isStarted());
            case "queue":
                broker.getDestination(new ActiveMQQueue(words[1]));
                return "done";
            case "durable_subscription": // a client has made it
                return Objects.requireNonNull(subscription(broker, words[1])).toString();
            case "remove":
                broker.removeDestination(new ActiveMQQueue(words[1]));
                return "done";
            case "depth":
                return depth(broker, words[1]);
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    /** The durable subscription of that name, of the client of that name; null if there is none. */
    private static DurableTopicSubscription subscription(BrokerService broker, String name) throws Exception {
        RegionBroker regions = (RegionBroker) broker.getBroker().getAdaptor(RegionBroker.class);
        return ((TopicRegion) regions.getTopicRegion()).lookupSubscription(name, name);
    }

    private static String depth(BrokerService broker, String name) throws Exception {
        DurableTopicSubscription subscription = subscription(broker, name);
        if (subscription != null) {
            return subscription.getPendingQueueSize() + " " + subscription.getDispatchedQueueSize();
        }
        DestinationStatistics counts = broker.getDestination(new ActiveMQQueue(name)).getDestinationStatistics();
        long held = counts.getInflight().getCount();
        return (counts.getMessages().getCount() - held) + " " + held;
    }
}

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The text by which a library connects, from the settings of a command. */
final class Urls {
    private Urls() {
    }

    /**
     * The URL of {@code client} with each {NAME} in it replaced: by the host, the port, the process, or the setting of that
     * name; {settings} by all others, each written as the client says. It is the client's other URL, "failover", where a
     * setting begins with that word.
     */
    static String of(Map<String, Object> client, Map<String, Object> command, Map<String, Object> settings) {
        boolean failover = settings.keySet().stream().anyMatch(each -> each.startsWith("failover."));
        Map<String, Object> known = new LinkedHashMap<>(Json.strings(client.get("settings")));
        known.putAll(settings);
        String url = (String) client.get(failover ? "failover" : "url");
        for (String each : List.of("host", "port", "process")) {
            url = url.replace("{" + each + "}", String.valueOf(command.get(each)));
        }
        List<String> others = new ArrayList<>();
        for (Map.Entry<String, Object> each : known.entrySet()) {
            String place = "{" + each.getKey() + "}";
            String value = String.valueOf(each.getValue());
            boolean unused = !failover && each.getKey().startsWith("failover.");
            if (url.contains(place)) {
                url = url.replace(place, value);
            } else if (!unused) {
                String name = each.getKey().replaceFirst("^failover\\.", (String) client.get("failover_prefix"));
                others.add(String.format((String) client.get("setting"), name, value));
            }
        }
        return url.replace("{settings}", String.join((String) client.get("separator"), others));
    }
}

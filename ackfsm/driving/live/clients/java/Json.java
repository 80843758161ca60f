import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON as maps, lists, strings, numbers, booleans and null; a line of the protocol is one object. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** The object that {@code text} is. */
    static Map<String, Object> object(String text) {
        Object read = new Json(text).value();
        if (read instanceof Map<?, ?> found) {
            return strings(found);
        }
        throw new IllegalArgumentException("a line is an object");
    }

    /** The same map, with names that are known to be text; none for null. */
    static Map<String, Object> strings(Object map) {
        Map<String, Object> named = new LinkedHashMap<>();
        if (map != null) {
            ((Map<?, ?>) map).forEach((name, value) -> named.put((String) name, value));
        }
        return named;
    }

    /** A value in one line. */
    static String written(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof Map<?, ?> map) {
            String before = "{";
            for (Map.Entry<?, ?> each : map.entrySet()) {
                write(each.getKey(), out.append(before));
                write(each.getValue(), out.append(':'));
                before = ",";
            }
            out.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof List<?> list) {
            String before = "[";
            for (Object each : list) {
                write(each, out.append(before));
                before = ",";
            }
            out.append(list.isEmpty() ? "[]" : "]");
        } else if (value instanceof String string) {
            out.append('"');
            for (char each : string.toCharArray()) {
                boolean plain = each >= ' ' && each <= '~' && each != '"' && each != '\\';
                out.append(plain ? String.valueOf(each) : String.format("\\u%04x", (int) each));
            }
            out.append('"');
        } else {
            out.append(value);
        }
    }

    private Object value() {
        char first = next();
        if (first == '"') {
            return string();
        }
        if (first != '{' && first != '[') {
            return word();
        }
        at++;
        Map<String, Object> map = new LinkedHashMap<>();
        List<Object> list = new ArrayList<>();
        char end = first == '{' ? '}' : ']';
        for (boolean more = next() != end || goesOn(end); more; more = goesOn(end)) {
            if (first == '[') {
                list.add(value());
            } else {
                String name = string();
                expect(':');
                map.put(name, value());
            }
        }
        return first == '{' ? map : list;
    }

    private boolean goesOn(char end) {
        if (next() != end) {
            expect(',');
            return true;
        }
        at++;
        return false;
    }

    private String string() {
        expect('"');
        StringBuilder out = new StringBuilder();
        for (char each = text.charAt(at++); each != '"'; each = text.charAt(at++)) {
            if (each == '\\') {
                each = text.charAt(at++);
                if (each == 'u') {
                    each = (char) Integer.parseInt(text.substring(at, at += 4), 16);
                } else if ("bfnrt".indexOf(each) >= 0) {
                    each = "\b\f\n\r\t".charAt("bfnrt".indexOf(each));
                }
            }
            out.append(each);
        }
        return out.toString();
    }

    private Object word() {
        int begun = at;
        while (at < text.length() && "+-.0123456789Eaeflnrstu".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String word = text.substring(begun, at);
        switch (word) {
            case "null":
                return null;
            case "true":
            case "false":
                return Boolean.valueOf(word);
            default:
                return word.matches("-?\\d+") ? (Object) Long.valueOf(word) : Double.valueOf(word);
        }
    }

    private char next() {
        while (at < text.length() && text.charAt(at) <= ' ') {
            at++;
        }
        if (at == text.length()) {
            throw new IllegalArgumentException("the line ends too early");
        }
        return text.charAt(at);
    }

    private void expect(char wanted) {
        if (next() != wanted) {
            throw new IllegalArgumentException("'" + wanted + "' is missing at " + at);
        }
        at++;
    }
}

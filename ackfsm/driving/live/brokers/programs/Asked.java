import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** Answers the lines of each connection to a port of this machine, each by a line. */
interface Asked {
    String answer(String[] words) throws Exception;

    static void listen(int port, Asked asked) throws IOException {
        try (ServerSocket listener = new ServerSocket(port, 50, InetAddress.getLoopbackAddress())) {
            while (true) {
                try (Socket socket = listener.accept()) {
                    converse(socket, asked);
                } catch (IOException gone) {
                    System.err.println(gone); // who asked is gone
                }
            }
        }
    }

    private static void converse(Socket socket, Asked asked) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
        PrintWriter answers = new PrintWriter(socket.getOutputStream(), true, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String answer;
            try {
                answer = asked.answer(line.split(" "));
            } catch (Exception error) {
                error.printStackTrace();
                answer = "error " + error;
            }
            answers.println(answer);
        }
    }
}

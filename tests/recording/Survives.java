/*
 * What a virtual machine does with signals, stacks and memory, and what its threads wait for. Prints what came of each, which
 * is the same for each run.
 */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.ReentrantLock;

public class Survives {
    static final Object monitor = new Object();
    static final ReentrantLock lock = new ReentrantLock();
    static String none;
    static int count, locked;

    static int deeper(int n) {
        return deeper(n + 1) + 1;
    }

    /* The machine finds both by a signal: SEGV. */
    static void errors() {
        int nulls = 0, overflows = 0;
        for (int i = 0; i < 20000; i++) {
            try {
                none.length();
            } catch (NullPointerException e) {
                nulls++;
            }
        }
        for (int i = 0; i < 3; i++) {
            try {
                deeper(0);
            } catch (StackOverflowError e) {
                overflows++;
            }
        }
        System.out.println(nulls + " null pointers, " + overflows + " overflows");
    }

    static Void work() {
        List<byte[]> garbage = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            synchronized (monitor) {
                count++;
            }
            lock.lock();
            locked++;
            lock.unlock();
            garbage.add(new byte[4096]);
            if (garbage.size() > 100)
                garbage.clear();
        }
        return null;
    }

    static void workers() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Void>> futures = new ArrayList<>();
        for (int i = 0; i < 8; i++)
            futures.add(pool.submit(Survives::work));
        for (Future<Void> future : futures)
            future.get();
        pool.shutdown();
        System.gc();
        System.out.println(count + " in the monitor, " + locked + " with the lock");
    }

    static void answer(ServerSocketChannel server) {
        try (SocketChannel channel = server.accept()) {
            ByteBuffer bytes = ByteBuffer.allocate(1);
            channel.read(bytes);
            bytes.flip();
            channel.write(bytes);
        } catch (Exception e) {
            System.out.println(e);
        }
    }

    static void socket() throws Exception {
        ServerSocketChannel server = ServerSocketChannel.open().bind(new InetSocketAddress("127.0.0.1", 0));
        Thread thread = new Thread(() -> answer(server));
        thread.start();
        Socket socket = new Socket("127.0.0.1", ((InetSocketAddress)server.getLocalAddress()).getPort());
        socket.getOutputStream().write(7);
        System.out.println(socket.getInputStream().read() + " from the socket");
        thread.join();
    }

    static void child() throws Exception {
        Process process = new ProcessBuilder("echo", "a child").start();
        System.out.println(new BufferedReader(new InputStreamReader(process.getInputStream())).readLine());
        System.out.println(process.waitFor() + " of the child");
    }

    static void sleep() {
        try {
            Thread.sleep(1000000);
        } catch (InterruptedException e) {
            System.out.println("interrupted");
        }
    }

    public static void main(String[] arguments) throws Exception {
        errors();
        workers();
        socket();
        child();
        Thread thread = new Thread(Survives::sleep);
        thread.start();
        thread.interrupt();
        thread.join();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("the end")));
    }
}

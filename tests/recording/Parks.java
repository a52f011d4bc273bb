/*
 * A thread that parks in outermost, middle and innermost, and is released by release. It does so once before the virtual
 * machine lists its methods, which it has compiled by then, and prints its PID.
 *
 * usage: Parks ROUNDS     0: it parks until stdin ends, and prints a line when it does
 */
import java.util.concurrent.locks.LockSupport;

public class Parks {
    static volatile boolean released = true;

    static void innermost() {
        while (!released)
            LockSupport.park();
    }

    static void middle() {
        innermost();
    }

    static void outermost() {
        middle();
    }

    static void release(Thread thread) {
        released = true;
        LockSupport.unpark(thread);
    }

    static void list() throws Exception {
        String pid = Long.toString(ProcessHandle.current().pid());
        Process process = new ProcessBuilder("jcmd", pid, "Compiler.perfmap").redirectErrorStream(true).start();
        process.getInputStream().readAllBytes();
        if (process.waitFor() != 0)
            System.exit(77);
        System.out.println(pid);
    }

    static Thread park() throws Exception {
        Thread thread = new Thread(Parks::outermost, "parks");
        released = false;
        thread.start();
        while (thread.getState() != Thread.State.WAITING)
            Thread.sleep(1);
        return thread;
    }

    static void parkOnce() throws Exception {
        Thread thread = park();
        Thread.sleep(100);
        release(thread);
        thread.join();
    }

    public static void main(String[] arguments) throws Exception {
        int rounds = Integer.parseInt(arguments[0]);
        /* The same stacks as later, before they have names. */
        parkOnce();
        list();
        for (int i = 0; i < rounds; i++)
            parkOnce();
        if (rounds == 0) {
            Thread thread = park();
            System.out.println("parks");
            System.in.read();
            release(thread);
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
// A virtual thread that sleeps within many calls. When it goes on, HotSpot puts but the innermost frames on
// the stack of the thread that runs it; the others follow when these return. java_test.py reads which
// calls there are: outer(), DEPTH + 1 times middle(), spin().

public class Thawed {
    static final int DEPTH = 10;
    static volatile long sum;

    static long spin(long n) {
        long s = 0;
        for (long i = 0; i < n; i++) s += i ^ s << 2;
        return s;
    }

    // Works until it has done so for a time, and sleeps before that.
    static void middle(int depth, long nanoseconds) throws InterruptedException {
        if (depth > 0) {
            middle(depth - 1, nanoseconds);
            return;
        }
        for (long worked = 0; worked < nanoseconds;) {
            Thread.sleep(1);
            long begin = System.nanoTime();
            for (int i = 0; i < 20; i++) sum += spin(40000);
            worked += System.nanoTime() - begin;
        }
    }

    static void outer(long nanoseconds) {
        try {
            middle(DEPTH, nanoseconds);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws Exception {
        long time = (long) (Double.parseDouble(args[0]) * 1e9);
        Runnable work = () -> outer(time);

        // Only Java 21 and later have it.
        ((Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work)).join();
    }
}

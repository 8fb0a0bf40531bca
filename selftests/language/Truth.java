// SPDX-License-Identifier: GPL-2.0-or-later
// A program that says what it runs: while it is in a kind of calls, its thread has the name of that kind.
// java_test.py reads the comments behind lines: "KIND METHOD" at a call, "KIND METHOD." where a method
// that works has its loop. Calls of a kind are in the order in which they happen, the outermost first.

import java.util.function.LongUnaryOperator;

public class Truth {
    static final int WORK = 40000;
    static long sum;

    interface Shape { long area(long n); }

    static class Circle implements Shape {
        public long area(long n) {
            long s = 0;
            for (long i = 0; i < n; i++) s += i ^ s << 1;    // shape Truth$Circle.area.
            return s;
        }
    }

    static final Shape SHAPE = new Circle();

    static long plainSpin(long n) {
        long s = 0;
        for (long i = 0; i < n; i++) s += i ^ s << 2;    // plain Truth.plainSpin.
        return s;
    }

    static long plainMiddle(long n) {
        long s = n;
        s += plainSpin(n);    // plain Truth.plainMiddle
        return s;
    }

    static long plainOuter(long n) {
        return plainMiddle(n) + 1;    // plain Truth.plainOuter
    }

    static long shapeOuter(long n) {
        return SHAPE.area(n);    // shape Truth.shapeOuter
    }

    static long deepSpin(long n) {
        long s = 0;
        for (long i = 0; i < n; i++) s += i ^ s << 3;    // deep Truth.deepSpin.
        return s;
    }

    static long deep(int depth, long n) {
        if (depth == 0)
            return deepSpin(n);    // deep Truth.deep
        return deep(depth - 1, n) + 1;    // deep Truth.deep*20
    }

    static synchronized long lockSpin(long n) {
        long s = 0;
        for (long i = 0; i < n; i++) s += i ^ s << 4;    // lock Truth.lockSpin.
        return s;
    }

    static long lockOuter(long n) {
        synchronized (SHAPE) {
            return lockSpin(n);    // lock Truth.lockOuter
        }
    }

    static long wideSpin(int a, long b, double c, int d, long e, double f, int g, long h, int i, long j, long n) {
        long s = a + b + d + e + g + h + i + j + (long) (c + f);
        for (long k = 0; k < n; k++) s += k ^ s << 5;    // wide Truth.wideSpin.
        return s;
    }

    static long wideOuter(long n) {
        return wideSpin(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, n) + 1;    // wide Truth.wideOuter
    }

    static long caughtSpin(long n) {
        long s = 0;
        for (long i = 0; i < n; i++) s += i ^ s << 6;    // caught Truth.caughtSpin.
        return s;
    }

    static final IllegalStateException FAILED = new IllegalStateException();

    static void fail() {
        throw FAILED;
    }

    static long caughtOuter(long n) {
        try {
            fail();
        } catch (IllegalStateException e) {
            return caughtSpin(n);    // caught Truth.caughtOuter
        }
        return 0;
    }

    static long virtualSpin(long n) {
        long s = 0;
        for (long i = 0; i < n; i++) s += i ^ s << 7;    // lambda Truth.virtualSpin.
        return s;
    }

    static final LongUnaryOperator LAMBDA = n ->
            virtualSpin(n);    // lambda Truth.lambda$static$0

    static long lambdaOuter(long n) {
        return LAMBDA.applyAsLong(n);    // lambda Truth.lambdaOuter
    }

    static long run(int kind) {
        switch (kind) {
        case 0: return plainOuter(WORK);    // plain Truth.run
        case 1: return shapeOuter(WORK);    // shape Truth.run
        case 2: return deep(20, WORK);    // deep Truth.run
        case 3: return lockOuter(WORK);    // lock Truth.run
        case 4: return wideOuter(WORK);    // wide Truth.run
        case 5: return caughtOuter(WORK);    // caught Truth.run
        default: return lambdaOuter(WORK);    // lambda Truth.run
        }
    }

    static final String[] KINDS = { "plain", "shape", "deep", "lock", "wide", "caught", "lambda" };

    public static void main(String[] args) {
        var threads = java.lang.management.ManagementFactory.getThreadMXBean();
        long end = (long) (Double.parseDouble(args[0]) * 1e9);

        // The recorder finds Java's tables some time after these are made.
        for (int i = 0; threads.getCurrentThreadCpuTime() < end; i++) {
            if (threads.getCurrentThreadCpuTime() > end / 3)
                Thread.currentThread().setName(KINDS[i % KINDS.length]);
            for (int k = 0; k < 8; k++)
                sum += run(i % KINDS.length);    // main Truth.main
            Thread.currentThread().setName("between");
        }
        System.out.println(sum);
    }
}

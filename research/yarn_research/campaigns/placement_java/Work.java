package placing;

import java.util.SplittableRandom;

/**
 * What the three applications compute, for every framework: the words of a line, whether a line is wanted, and
 * points within a circle.
 *
 * Law: the same input gives the same output, whatever the framework and its number of tasks.
 */
final class Work {
    static final String WORDCOUNT = "wordcount";
    static final String GREP = "grep";
    static final String PI = "pi";
    /** The keys of pi's two lines. */
    static final String INSIDE = "inside";
    static final String TOTAL = "total";

    private Work() {}

    static String[] words(String line) {
        return line.trim().split("\\s+");
    }

    static boolean wanted(String line, String pattern) {
        return line.contains(pattern);
    }

    /** How many of a task's random points of the unit square lie within the quarter circle. */
    static long inside(long task, long samples) {
        SplittableRandom chance = new SplittableRandom(task);
        long found = 0;
        for (long sample = 0; sample < samples; sample++) {
            double x = chance.nextDouble();
            double y = chance.nextDouble();
            if (x * x + y * y <= 1.0) {
                found++;
            }
        }
        return found;
    }
}

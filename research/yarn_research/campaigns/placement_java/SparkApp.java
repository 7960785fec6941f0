package placing;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/**
 * The applications on Spark: {@code SparkApp wordcount|grep|pi IN OUT RATE PATTERN}.
 *
 * Law: what is submitted says everything about containers. A file is one task.
 */
public final class SparkApp {
    private static final int REDUCES = 3;

    private SparkApp() {}

    public static void main(String[] given) {
        try (JavaSparkContext context = new JavaSparkContext(new SparkConf())) {
            JavaRDD<String> found;
            if (given[0].equals(Work.PI)) {
                found = counted(context.textFile(given[1]).flatMapToPair(SparkApp::points));
            } else {
                long kibPerSecond = Long.parseLong(given[3]);
                String pattern = given[4];
                JavaRDD<String> lines =
                        context.textFile(given[1]).mapPartitions(part -> read(part, kibPerSecond));
                if (given[0].equals(Work.GREP)) {
                    found = lines.filter(line -> Work.wanted(line, pattern));
                } else {
                    found = counted(lines.flatMap(line -> Arrays.asList(Work.words(line)).iterator())
                            .mapToPair(word -> new Tuple2<>(word, 1L)));
                }
            }
            found.saveAsTextFile(given[2]);
        }
    }

    private static JavaRDD<String> counted(JavaPairRDD<String, Long> ones) {
        return ones.reduceByKey(Long::sum, REDUCES).map(each -> each._1() + "\t" + each._2());
    }

    private static Iterator<Tuple2<String, Long>> points(String line) {
        String[] told = Work.words(line);
        long samples = Long.parseLong(told[1]);
        List<Tuple2<String, Long>> found = new ArrayList<>();
        found.add(new Tuple2<>(Work.INSIDE, Work.inside(Long.parseLong(told[0]), samples)));
        found.add(new Tuple2<>(Work.TOTAL, samples));
        return found.iterator();
    }

    /** The lines of one part, each handed on when it may have been read. */
    private static Iterator<String> read(Iterator<String> lines, long kibPerSecond) {
        SteadyRate rate = new SteadyRate(kibPerSecond);
        return new Iterator<String>() {
            @Override
            public boolean hasNext() {
                return lines.hasNext();
            }

            @Override
            public String next() {
                String line = lines.next();
                try {
                    rate.took(line.length());
                } catch (InterruptedException stopped) {
                    throw new IllegalStateException(stopped);
                }
                return line;
            }
        };
    }
}

package placing;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.reduce.LongSumReducer;
import org.apache.hadoop.util.GenericOptionsParser;

/**
 * The applications on MapReduce: {@code MapReduceApp [-D ...] wordcount|grep|pi IN OUT RATE PATTERN}.
 *
 * Law: settings come by -D alone. A file is one map; a file of pi's input has one line: task and samples.
 */
public final class MapReduceApp {
    private static final String RATE = "placing.rate.kib";
    private static final String PATTERN = "placing.pattern";

    private MapReduceApp() {}

    public static void main(String[] arguments) throws Exception {
        Configuration configuration = new Configuration();
        String[] given = new GenericOptionsParser(configuration, arguments).getRemainingArgs();
        configuration.set(RATE, given[3]);
        configuration.set(PATTERN, given[4]);
        Job job = Job.getInstance(configuration);
        job.setJarByClass(MapReduceApp.class);
        job.setOutputKeyClass(Text.class);
        job.setOutputValueClass(LongWritable.class);
        switch (given[0]) {
            case Work.WORDCOUNT:
                counts(job, Words.class);
                break;
            case Work.GREP:
                job.setMapperClass(Lines.class);
                job.setOutputValueClass(NullWritable.class);
                job.setNumReduceTasks(0);
                break;
            case Work.PI:
                counts(job, Points.class);
                break;
            default:
                throw new IllegalArgumentException(given[0]);
        }
        FileInputFormat.addInputPath(job, new Path(given[1]));
        FileOutputFormat.setOutputPath(job, new Path(given[2]));
        System.exit(job.waitForCompletion(false) ? 0 : 1);
    }

    private static void counts(Job job, Class<? extends Mapper<LongWritable, Text, Text, LongWritable>> mapper) {
        job.setMapperClass(mapper);
        job.setCombinerClass(LongSumReducer.class);
        job.setReducerClass(LongSumReducer.class);
        job.setNumReduceTasks(1);
    }

    /** Each word once, read at the rate. */
    public static final class Words extends Mapper<LongWritable, Text, Text, LongWritable> {
        private final LongWritable one = new LongWritable(1);
        private final Text word = new Text();
        private SteadyRate rate;

        @Override
        protected void setup(Context context) {
            rate = new SteadyRate(context.getConfiguration().getLong(RATE, 1));
        }

        @Override
        protected void map(LongWritable at, Text line, Context context) throws IOException, InterruptedException {
            rate.took(line.getLength());
            for (String each : Work.words(line.toString())) {
                word.set(each);
                context.write(word, one);
            }
        }
    }

    /** The lines that are wanted, read at the rate. */
    public static final class Lines extends Mapper<LongWritable, Text, Text, NullWritable> {
        private SteadyRate rate;
        private String pattern;

        @Override
        protected void setup(Context context) {
            rate = new SteadyRate(context.getConfiguration().getLong(RATE, 1));
            pattern = context.getConfiguration().get(PATTERN);
        }

        @Override
        protected void map(LongWritable at, Text line, Context context) throws IOException, InterruptedException {
            rate.took(line.getLength());
            if (Work.wanted(line.toString(), pattern)) {
                context.write(line, NullWritable.get());
            }
        }
    }

    /** The points of one task. */
    public static final class Points extends Mapper<LongWritable, Text, Text, LongWritable> {
        @Override
        protected void map(LongWritable at, Text line, Context context) throws IOException, InterruptedException {
            String[] told = Work.words(line.toString());
            long samples = Long.parseLong(told[1]);
            long inside = Work.inside(Long.parseLong(told[0]), samples);
            context.write(new Text(Work.INSIDE), new LongWritable(inside));
            context.write(new Text(Work.TOTAL), new LongWritable(samples));
        }
    }
}

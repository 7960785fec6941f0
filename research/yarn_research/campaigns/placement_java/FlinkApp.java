package placing;

import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.typeutils.ResultTypeQueryable;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.BasePathBucketAssigner;
import org.apache.flink.util.Collector;

/**
 * The applications on Flink, in batch: {@code FlinkApp wordcount|grep|pi IN OUT RATE PATTERN}.
 *
 * Law: every operator has the parallelism that was submitted. A file is one split; who reads takes the next.
 */
public final class FlinkApp {
    private static final TypeInformation<Tuple2<String, Long>> COUNTS = Types.TUPLE(Types.STRING, Types.LONG);

    private FlinkApp() {}

    public static void main(String[] given) throws Exception {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
        environment.setRuntimeMode(RuntimeExecutionMode.BATCH);
        FileSource<String> source =
                FileSource.forRecordStreamFormat(new TextLineInputFormat(), new Path(given[1])).build();
        DataStream<String> lines = environment.fromSource(source, WatermarkStrategy.noWatermarks(), "lines");
        DataStream<String> found;
        if (given[0].equals(Work.PI)) {
            found = counted(lines.flatMap(new Points()));
        } else {
            long kibPerSecond = Long.parseLong(given[3]);
            String pattern = given[0].equals(Work.GREP) ? given[4] : "";
            DataStream<String> wanted = lines.flatMap(new Wanted(kibPerSecond, pattern));
            found = given[0].equals(Work.GREP) ? wanted : counted(wanted.flatMap(new Words()));
        }
        found.sinkTo(FileSink.forRowFormat(new Path(given[2]), new SimpleStringEncoder<String>())
                .withBucketAssigner(new BasePathBucketAssigner<>())
                .build());
        environment.execute(given[0]);
    }

    private static DataStream<String> counted(DataStream<Tuple2<String, Long>> ones) {
        return ones.keyBy(each -> each.f0).sum(1).map(each -> each.f0 + "\t" + each.f1);
    }

    /** The lines that are wanted, read at the rate. */
    private static final class Wanted implements FlatMapFunction<String, String> {
        private static final long serialVersionUID = 1L;
        private final SteadyRate rate;
        private final String pattern;

        Wanted(long kibPerSecond, String pattern) {
            rate = new SteadyRate(kibPerSecond);
            this.pattern = pattern;
        }

        @Override
        public void flatMap(String line, Collector<String> out) throws InterruptedException {
            rate.took(line.length());
            if (Work.wanted(line, pattern)) {
                out.collect(line);
            }
        }
    }

    /** Each word once. */
    private static final class Words
            implements FlatMapFunction<String, Tuple2<String, Long>>,
                    ResultTypeQueryable<Tuple2<String, Long>> {
        private static final long serialVersionUID = 1L;

        @Override
        public void flatMap(String line, Collector<Tuple2<String, Long>> out) {
            for (String word : Work.words(line)) {
                out.collect(Tuple2.of(word, 1L));
            }
        }

        @Override
        public TypeInformation<Tuple2<String, Long>> getProducedType() {
            return COUNTS;
        }
    }

    /** The points of one task: a line has task and samples. */
    private static final class Points
            implements FlatMapFunction<String, Tuple2<String, Long>>,
                    ResultTypeQueryable<Tuple2<String, Long>> {
        private static final long serialVersionUID = 1L;

        @Override
        public void flatMap(String line, Collector<Tuple2<String, Long>> out) {
            String[] told = Work.words(line);
            long samples = Long.parseLong(told[1]);
            out.collect(Tuple2.of(Work.INSIDE, Work.inside(Long.parseLong(told[0]), samples)));
            out.collect(Tuple2.of(Work.TOTAL, samples));
        }

        @Override
        public TypeInformation<Tuple2<String, Long>> getProducedType() {
            return COUNTS;
        }
    }
}

import java.nio.file.{Files, Paths, StandardCopyOption}
val kept = sc.parallelize(0 until 20, 20).flatMap(n => (0 until 40).map(key => (key, n * 1000 + key))).groupByKey(20).mapValues(_.sum)
def joined(pairs: Array[(Int, Int)]) = pairs.map { case (key, total) => s"$key:$total" }.sorted.mkString(",")
def cell(number: Int, folder: String): Unit = { val fresh = sc.parallelize(0 until 200, 20).map(n => (n % 7, n * number)).reduceByKey(_ + _, 20); val waits = sc.parallelize(0 until 20, 20).map { n => Thread.sleep(1000); n }.sum.toInt; val told = joined(kept.collect()) + " " + joined(fresh.collect()) + " " + waits; Files.write(Paths.get(folder, s"part-$number"), told.getBytes); Files.move(Paths.get(folder, s"part-$number"), Paths.get(folder, s"result-$number"), StandardCopyOption.ATOMIC_MOVE) }

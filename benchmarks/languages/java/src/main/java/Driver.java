import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RScript;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/** A client process of `bench languages`: Redisson on one task. Its arguments are those of the task, as name=value. */
public final class Driver {
  private static final String COMPARE_AND_DELETE =
      "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
  private static final long POLL_MS = 10;

  private interface Release {
    void run() throws Exception;
  }

  private static RedissonClient client;
  private static String library;
  private static String kind;
  private static long ttlMs;
  private static int capacity;

  public static void main(String[] args) throws Exception {
    var task = new java.util.HashMap<String, String>();
    for (String arg : args) task.put(arg.substring(0, arg.indexOf('=')), arg.substring(arg.indexOf('=') + 1));
    library = task.get("library");
    kind = task.get("kind");
    ttlMs = Long.parseLong(task.get("ttlMs"));
    capacity = Integer.parseInt(task.get("capacity"));
    var config = new Config();
    config.setLockWatchdogTimeout(ttlMs);
    config.useSingleServer().setAddress("redis://" + task.get("address")).setConnectionPoolSize(16).setConnectionMinimumIdleSize(8);
    client = Redisson.create(config);
    int lanes = Integer.parseInt(task.get("lanes"));
    boolean own = task.get("own").equals("true");
    String name = task.get("name");
    if (task.get("op").equals("hold")) hold(name, own, lanes);
    else loop(name, own, lanes, Double.parseDouble(task.get("sectionMs")));
  }

  /** Milliseconds on the machine's monotonic clock. */
  private static double now() {
    return System.nanoTime() / 1e6;
  }

  private static void sleepUntil(double at) throws InterruptedException {
    double left = at - now();
    if (left > 0) Thread.sleep((long) left);
  }

  private static Release take(String name, int lane) throws Exception {
    if (kind.equals("semaphore")) {
      RPermitExpirableSemaphore semaphore = client.getPermitExpirableSemaphore(name);
      semaphore.trySetPermits(capacity);
      String id = semaphore.acquire(ttlMs, TimeUnit.MILLISECONDS);
      return () -> semaphore.release(id);
    }
    if (library.equals("raw Redisson")) return takeRaw(name);
    RLock lock = lockOf(name, lane);
    lock.lock();
    return lock::unlock;
  }

  private static RLock lockOf(String name, int lane) {
    if (kind.equals("readers")) {
      var both = client.getReadWriteLock(name);
      return lane == 0 ? both.writeLock() : both.readLock();
    }
    return library.equals("Redisson RFairLock") ? client.getFairLock(name) : client.getLock(name);
  }

  private static Release takeRaw(String name) throws Exception {
    var bucket = client.<String>getBucket(name, StringCodec.INSTANCE);
    String value = java.util.UUID.randomUUID().toString();
    while (!bucket.setIfAbsent(value, java.time.Duration.ofMillis(ttlMs))) Thread.sleep(POLL_MS);
    return () ->
        client.getScript(StringCodec.INSTANCE)
            .eval(RScript.Mode.READ_WRITE, COMPARE_AND_DELETE, RScript.ReturnType.LONG, List.of(name), value);
  }

  private static void loop(String name, boolean own, int lanes, double sectionMs) throws Exception {
    var entries = new ArrayList<String>();
    double[] waiting = new double[lanes];
    var done = new CountDownLatch(lanes);
    take(name + ":warm-up:" + ProcessHandle.current().pid(), 0).run();
    // It is ready, and reads when to begin and to end.
    System.out.println("ready");
    System.out.flush();
    var times = new java.util.Scanner(System.in).useLocale(java.util.Locale.ROOT);
    double startAt = times.nextDouble();
    double stopAt = times.nextDouble();
    for (int index = 0; index < lanes; index++) {
      int lane = index;
      // Redisson's locks belong to threads.
      var thread = new Thread(() -> {
        try {
          sleepUntil(startAt);
          while (now() < stopAt) {
            double asked = now();
            synchronized (entries) {
              waiting[lane] = asked;
            }
            Release release = take(own ? name + ":" + lane : name, lane);
            double entered = now();
            if (sectionMs > 0) Thread.sleep((long) sectionMs);
            double left = now();
            release.run();
            synchronized (entries) {
              waiting[lane] = 0;
              entries.add(String.format(java.util.Locale.ROOT, "[%d,%.3f,%.3f,%.3f]", lane, asked, entered, left));
            }
          }
        } catch (Exception error) {
          error.printStackTrace();
          Runtime.getRuntime().halt(1);
        }
        done.countDown();
      });
      thread.setDaemon(true);
      thread.start();
    }
    done.await((long) (stopAt - now() + 200), TimeUnit.MILLISECONDS);
    synchronized (entries) {
      var unserved = new ArrayList<String>();
      for (int lane = 0; lane < lanes; lane++)
        if (waiting[lane] > 0) unserved.add(String.format(java.util.Locale.ROOT, "[%d,%.3f]", lane, waiting[lane]));
      System.out.println("{\"entries\":[" + String.join(",", entries) + "],\"unserved\":[" + String.join(",", unserved) + "]}");
      System.out.flush();
      Runtime.getRuntime().halt(0);
    }
  }

  /** Takes its locks, says so, and keeps them until it is killed. */
  private static void hold(String name, boolean own, int lanes) throws Exception {
    for (int lane = 0; lane < lanes; lane++) take(own ? name + ":" + lane : name, lane);
    System.out.println("held");
    System.out.flush();
    Thread.currentThread().join();
  }
}

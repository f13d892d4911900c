import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * A worker of the lab with the locks of Redisson: the workloads mutex and lock-set, as worker/main.ts does them, and their histories in the
 * format of docs/histories.md. It answers commands as SpokenWorker of worker/worker-process.ts gives them.
 */
public final class RedissonWorker {
  private static final Gson JSON = new Gson();
  private static final long WAIT_MS = 5_000;
  private static final long AFTER_FAILURE_MS = 20;
  private static final Map<String, List<String>> RESOURCES =
      Map.of("mutex", List.of("mutex 1", "mutex 2"), "lock-set", List.of("lock-set"));
  private static final int LOOPS = 2;
  private static final long END_MS = 25_000;

  private static volatile boolean stopping;
  private static JsonObject setup;
  private static RedissonClient client;
  private static boolean isFenced;

  public static void main(String[] args) throws Exception {
    setup = JSON.fromJson(args[0], JsonObject.class);
    isFenced = setup.getAsJsonObject("options").get("isFenced").getAsBoolean();
    client = connect();
    var threads = new ArrayList<Thread>();
    System.out.println("ready");
    var commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = commands.readLine(); line != null; line = commands.readLine()) {
      JsonArray command = JSON.fromJson(line, JsonArray.class);
      Object answer = true;
      switch (command.get(0).getAsString()) {
        case "start" -> {
          for (JsonElement workload : setup.getAsJsonArray("workloads")) threads.addAll(startLoops(workload.getAsString()));
        }
        case "stop" -> {
          stopping = true;
          endAll(threads);
        }
        case "ghosts" -> answer = ghosts(command.get(1).getAsLong());
        default -> throw new IllegalArgumentException(line);
      }
      System.out.println(JSON.toJson(answer));
      System.out.flush();
    }
    // Its parent has ended.
    Runtime.getRuntime().halt(0);
  }

  /** A call that does not end stays without an outcome in the history. */
  private static void endAll(List<Thread> threads) throws InterruptedException {
    double end = now() + END_MS;
    for (Thread thread : threads) thread.join(Math.max(1, (long) (end - now())));
    long left = threads.stream().filter(Thread::isAlive).count();
    if (left > 0)
      System.err.println(setup.get("name").getAsString() + ": " + left + " calls have not ended within " + END_MS + " ms");
  }

  /** A client that has just been started may find no server. */
  private static RedissonClient connect() throws InterruptedException {
    JsonObject address = setup.getAsJsonObject("address");
    var config = new Config();
    config.setLockWatchdogTimeout(setup.getAsJsonObject("options").get("ttlMs").getAsLong());
    config
        .useSingleServer()
        .setAddress("redis://" + address.get("host").getAsString() + ":" + address.get("port").getAsInt())
        // Of the 64 connections that a server has under the nemesis connection-limit, the defaults of three workers would need more.
        .setConnectionPoolSize(8)
        .setConnectionMinimumIdleSize(2);
    while (true) {
      try {
        return Redisson.create(config);
      } catch (RuntimeException error) {
        Thread.sleep(AFTER_FAILURE_MS);
      }
    }
  }

  private static List<Thread> startLoops(String workload) throws IOException {
    var recorder = new Recorder(workload);
    var threads = new ArrayList<Thread>();
    for (int loop = 0; loop < LOOPS; loop++) {
      int first = loop;
      // The locks of Redisson belong to threads.
      var thread =
          new Thread(
              () -> {
                try (var sets = new SetClient()) {
                  for (int round = first; !stopping; round++) oneRound(workload, recorder, sets, round);
                } catch (Exception error) {
                  error.printStackTrace();
                  Runtime.getRuntime().halt(1);
                }
              });
      thread.setDaemon(true);
      thread.start();
      threads.add(thread);
    }
    return threads;
  }

  private static void oneRound(String workload, Recorder recorder, SetClient sets, int round) throws Exception {
    var names = RESOURCES.get(workload);
    String name = names.get(round % names.size());
    Hold hold = recorder.acquire(name);
    if (hold == null) {
      Thread.sleep(AFTER_FAILURE_MS);
      return;
    }
    if (workload.equals("lock-set")) work(hold, sets);
    else sleepUpTo(setup.get("holdMs").getAsDouble());
    if (!hold.release()) Thread.sleep(AFTER_FAILURE_MS);
  }

  /** Adds an element to each set as a program does that trusts its lock: reads, works, and writes. */
  private static void work(Hold hold, SetClient sets) throws Exception {
    String added = setup.get("name").getAsString() + " " + hold.acquisitionId;
    String token = hold.token == null ? null : String.valueOf(hold.token);
    List<String> plain = sets.read("plain", null);
    List<String> fenced = token == null ? null : sets.read("fenced", token);
    sleepUpTo(setup.get("holdMs").getAsDouble());
    sets.write("plain", plain, added, null);
    if (fenced != null) sets.write("fenced", fenced, added, token);
  }

  private static void sleepUpTo(double ms) throws InterruptedException {
    TimeUnit.NANOSECONDS.sleep((long) (ms * 1e6 * ThreadLocalRandom.current().nextDouble()));
  }

  private static Map<String, Integer> ghosts(long withinMs) throws InterruptedException {
    var ghosts = new LinkedHashMap<String, Integer>();
    var threads = new ArrayList<Thread>();
    for (JsonElement workload : setup.getAsJsonArray("workloads")) {
      ghosts.put(workload.getAsString(), 0);
      for (String name : RESOURCES.get(workload.getAsString())) {
        var thread =
            new Thread(
                () -> {
                  if (isFree(name, withinMs)) return;
                  synchronized (ghosts) {
                    ghosts.merge(workload.getAsString(), 1, Integer::sum);
                  }
                });
        thread.start();
        threads.add(thread);
      }
    }
    for (Thread thread : threads) thread.join();
    return ghosts;
  }

  private static boolean isFree(String name, long withinMs) {
    double end = now() + withinMs;
    RLock lock = client.getLock(name);
    while (now() < end) {
      try {
        if (lock.tryLock(Math.max(1, (long) (end - now())), TimeUnit.MILLISECONDS)) {
          lock.unlock();
          return true;
        }
      } catch (Exception error) {
        // Its client has just connected: it tries again.
      }
    }
    return false;
  }

  /** Milliseconds on the clock of the machine that the other workers read too. */
  private static double now() {
    return System.nanoTime() / 1e6;
  }

  /** Writes the history of a workload. */
  private static final class Recorder {
    private final OutputStream file;
    private int calls;
    private int acquisitions;

    Recorder(String workload) throws IOException {
      var path = setup.get("folder").getAsString() + "/" + workload + " " + setup.get("name").getAsString() + ".jsonl";
      file = new FileOutputStream(path, true);
    }

    /** Null: it was not acquired, or nobody knows. */
    Hold acquire(String resource) {
      int id = nextCall();
      note("invoke", "acquire", resource, Map.of("id", id));
      RLock lock = isFenced ? client.getFencedLock(resource) : client.getLock(resource);
      Long token = null;
      try {
        if (isFenced) token = client.getFencedLock(resource).tryLockAndGetToken(WAIT_MS, TimeUnit.MILLISECONDS);
        if (isFenced ? token == null : !lock.tryLock(WAIT_MS, TimeUnit.MILLISECONDS)) {
          note("fail", "acquire", resource, Map.of("id", id));
          return null;
        }
      } catch (Exception error) {
        note("info", "acquire", resource, Map.of("id", id, "error", String.valueOf(error)));
        return null;
      }
      var hold = new Hold(this, lock, resource, setup.get("name").getAsString() + "/" + nextAcquisition(), token);
      var granted = new LinkedHashMap<String, Object>(Map.of("id", id, "acquisitionId", hold.acquisitionId));
      if (token != null) granted.put("token", String.valueOf(token));
      note("ok", "acquire", resource, granted);
      return hold;
    }

    synchronized int nextCall() {
      return ++calls;
    }

    private synchronized int nextAcquisition() {
      return ++acquisitions;
    }

    synchronized void note(String type, String operation, String resource, Map<String, ?> rest) {
      var event = new LinkedHashMap<String, Object>();
      event.put("type", type);
      event.put("operation", operation);
      event.put("process", setup.get("name").getAsString());
      event.put("time", now());
      event.put("resource", resource);
      event.putAll(rest);
      try {
        // Written before the call goes on: the lines of a killed process are there.
        file.write((JSON.toJson(event) + "\n").getBytes(StandardCharsets.UTF_8));
      } catch (IOException error) {
        throw new IllegalStateException(error);
      }
    }
  }

  private record Hold(Recorder recorder, RLock lock, String resource, String acquisitionId, Long token) {
    /** What Redisson tells of a loss is the error of `unlock`. From the call on its holder counts on nothing. */
    boolean release() {
      double releasedAt = now();
      int id = recorder.nextCall();
      var call = Map.of("acquisitionId", acquisitionId, "id", id);
      recorder.note("invoke", "release", resource, call);
      try {
        lock.unlock();
      } catch (IllegalMonitorStateException error) {
        recorder.note("info", "loss", resource, Map.of("acquisitionId", acquisitionId, "endedAt", releasedAt));
        recorder.note("fail", "release", resource, with(call, error));
        return false;
      } catch (RuntimeException error) {
        recorder.note("info", "release", resource, with(call, error));
        return false;
      }
      recorder.note("ok", "release", resource, call);
      return true;
    }

    private static Map<String, Object> with(Map<String, ?> call, Exception error) {
      var all = new LinkedHashMap<String, Object>(call);
      all.put("error", String.valueOf(error));
      return all;
    }
  }

  /** A connection to the kept set; see kept-set.ts. */
  private static final class SetClient implements AutoCloseable {
    private final SocketChannel channel;
    private final BufferedReader replies;
    private final OutputStream requests;

    SetClient() throws IOException {
      JsonElement at = setup.get("setAt");
      channel =
          at.getAsJsonPrimitive().isString()
              ? SocketChannel.open(UnixDomainSocketAddress.of(at.getAsString()))
              : SocketChannel.open(new InetSocketAddress("127.0.0.1", at.getAsInt()));
      replies = new BufferedReader(Channels.newReader(channel, StandardCharsets.UTF_8));
      requests = Channels.newOutputStream(channel);
    }

    /** Null: the token was refused. */
    List<String> read(String set, String token) throws IOException {
      return ask("read", set, token, Map.of());
    }

    void write(String set, List<String> read, String added, String token) throws IOException {
      var elements = new ArrayList<String>(read);
      elements.add(added);
      ask("write", set, token, Map.of("elements", elements, "added", added));
    }

    private List<String> ask(String what, String set, String token, Map<String, ?> rest) throws IOException {
      var request = new LinkedHashMap<String, Object>(Map.of("do", what, "set", set));
      if (token != null) request.put("token", token);
      request.putAll(rest);
      requests.write((JSON.toJson(request) + "\n").getBytes(StandardCharsets.UTF_8));
      JsonElement elements = JSON.fromJson(replies.readLine(), JsonObject.class).get("elements");
      if (elements == null) return null;
      var list = new ArrayList<String>();
      for (JsonElement element : elements.getAsJsonArray()) list.add(element.getAsString());
      return list;
    }

    @Override
    public void close() throws IOException {
      channel.close();
    }
  }
}

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * A process with locks of Redisson that does what a test says: see redisson-peer.ts. It answers commands as SpokenProcess of
 * worker/spoken-process.ts gives them. A holder is a thread, since the locks of Redisson belong to threads.
 */
public final class RedissonPeer {
  private static final Gson JSON = new Gson();
  private static final Map<String, ExecutorService> HOLDERS = new HashMap<>();
  private static final Map<String, Future<Map<String, Object>>> OUTCOMES = new HashMap<>();

  private static RedissonClient client;
  private static boolean isFenced;

  public static void main(String[] args) throws Exception {
    var setup = JSON.fromJson(args[0], JsonObject.class);
    isFenced = setup.get("isFenced").getAsBoolean();
    client = connect(setup);
    System.out.println("ready");
    var commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = commands.readLine(); line != null; line = commands.readLine()) {
      System.out.println(JSON.toJson(answer(JSON.fromJson(line, JsonArray.class))));
      System.out.flush();
    }
    // Its parent has ended.
    Runtime.getRuntime().halt(0);
  }

  private static RedissonClient connect(JsonObject setup) {
    var config = new Config();
    config.setLockWatchdogTimeout(setup.get("ttlMs").getAsLong());
    var addresses = setup.getAsJsonArray("addresses");
    if (setup.get("isCluster").getAsBoolean()) {
      var servers = config.useClusterServers();
      for (JsonElement address : addresses) servers.addNodeAddress(address.getAsString());
    } else {
      config.useSingleServer().setAddress(addresses.get(0).getAsString());
    }
    return Redisson.create(config);
  }

  private static Object answer(JsonArray command) throws Exception {
    String holder = command.size() > 1 ? command.get(1).getAsString() : "";
    switch (command.get(0).getAsString()) {
      case "begin" -> {
        String name = command.get(2).getAsString();
        long waitMs = command.get(3).getAsLong();
        long leaseMs = command.get(4).getAsLong();
        var thread = HOLDERS.computeIfAbsent(holder, RedissonPeer::newThread);
        OUTCOMES.put(holder, thread.submit(() -> acquire(name, waitMs, leaseMs)));
        return true;
      }
      case "outcome" -> {
        return OUTCOMES.get(holder).get();
      }
      case "release" -> {
        String name = command.get(2).getAsString();
        return HOLDERS.get(holder).submit(() -> release(name)).get();
      }
      case "force" -> {
        return client.getLock(holder).forceUnlock();
      }
      default -> throw new IllegalArgumentException(command.toString());
    }
  }

  private static ExecutorService newThread(String name) {
    return Executors.newSingleThreadExecutor(
        work -> {
          var thread = new Thread(work, name);
          thread.setDaemon(true);
          return thread;
        });
  }

  private static RLock lockOf(String name) {
    return isFenced ? client.getFencedLock(name) : client.getLock(name);
  }

  private static Map<String, Object> acquire(String name, long waitMs, long leaseMs) {
    var outcome = new LinkedHashMap<String, Object>();
    try {
      if (isFenced) {
        Long token = client.getFencedLock(name).tryLockAndGetToken(waitMs, leaseMs, TimeUnit.MILLISECONDS);
        outcome.put("granted", token != null);
        if (token != null) outcome.put("token", String.valueOf(token));
      } else {
        outcome.put("granted", lockOf(name).tryLock(waitMs, leaseMs, TimeUnit.MILLISECONDS));
      }
    } catch (Exception error) {
      outcome.put("granted", false);
      outcome.put("error", String.valueOf(error));
    }
    outcome.put("at", now());
    return outcome;
  }

  private static Map<String, Object> release(String name) {
    var outcome = new LinkedHashMap<String, Object>();
    outcome.put("at", now());
    try {
      lockOf(name).unlock();
      outcome.put("released", true);
    } catch (Exception error) {
      outcome.put("released", false);
      outcome.put("error", String.valueOf(error));
    }
    return outcome;
  }

  /** Milliseconds on the clock of the machine that the other processes read too. */
  private static double now() {
    return System.nanoTime() / 1e6;
  }
}

import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.h2.H2Backend;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.wire.message.MongoMessage;
import java.net.InetSocketAddress;
import java.util.List;
import org.h2.mvstore.MVStore;

/** mongo-java-server on a port of 127.0.0.1. What it has acknowledged is in its file. */
public class DurableMongo {
    public static void main(String[] args) throws Exception {
        // By itself the store writes once a second.
        MVStore store = new MVStore.Builder().fileName(args[1]).autoCommitDisabled().open();
        H2Backend backend = new H2Backend(store) {
            // One request at a time: a read may fail with a NullPointerException while another request deletes.
            @Override
            public synchronized Document handleMessage(MongoMessage message) {
                Document answer = super.handleMessage(message);
                store.commit();
                return answer;
            }
        };
        MongoServer server = new MongoServer(backend.version(new OldestForDrivers()));
        if (args.length > 2) server.enableOplog();
        server.bind(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])));
        System.out.println("ready " + ProcessHandle.current().pid());
    }

    /** Driver 7 speaks to no server that says it is older than 4.4. */
    private static class OldestForDrivers implements MongoVersion {
        @Override
        public List<Integer> getVersionArray() {
            return List.of(4, 4, 0);
        }

        @Override
        public int getWireVersion() {
            return 9;
        }
    }
}

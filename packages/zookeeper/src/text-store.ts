import type { SlotStore, ResultStore } from '@locks/core/backend';
import { slotsIn, resultsIn, type TextRecordStore } from '@locks/record-protocol/once';
import { hasCode } from './client-port.ts';
import { afterMaking } from './make-nodes.ts';
import { BESIDE_RESOURCES, encodeName } from './node-names.ts';
import type { CheckedZookeeperOptions } from './options.ts';
import { ShortSessions } from './short-sessions.ts';
import type { ZookeeperClientSource } from './zookeeper-sessions.ts';

type Options = Pick<CheckedZookeeperOptions, 'path' | 'connectTimeoutMs'>;

/** Servers take a request of 1 MiB. */
const MOST_BYTES = 1_000_000;
/** The version that a write does not compare. */
const ANY = -1;

/** @param what - the function that the user called, for the message of an error */
export function recordOn(source: ZookeeperClientSource, options: Options, what: string): SlotStore {
  return slotsIn(textStore(source, options), options.path + BESIDE_RESOURCES, what);
}

/** @param what - the function that the user called, for the message of an error */
export function resultsOn(source: ZookeeperClientSource, options: Options, what: string): ResultStore {
  return resultsIn(textStore(source, options), options.path + BESIDE_RESOURCES, what);
}

/** Texts in persistent nodes, compared and swapped by the version of their data. No node is deleted, since versions would begin again. */
function textStore(source: ZookeeperClientSource, { path, connectTimeoutMs }: Options): TextRecordStore {
  const sessions = new ShortSessions(source, connectTimeoutMs);
  const clock = `${path}${BESIDE_RESOURCES}clock`;
  return {
    name: 'zookeeper',
    maxValueBytes: MOST_BYTES,
    clock: { stepMs: 1, skewMs: 1_000, endsHolds: false },
    read: (keys) =>
      sessions.use((session) =>
        afterMaking(session, clock, async () => {
          // A write needs a quorum, so that the reads behind it see all that was written before; and its answer tells the time.
          const [{ writtenAt }, ...contents] = await Promise.all([
            session.ask(() => session.port.write(clock, Buffer.alloc(0), ANY)),
            ...keys.map((key) => session.read(nodeOf(key))),
          ]);
          return {
            records: contents.map((content) => content && { value: content.data, version: content.version }),
            now: writtenAt,
          };
        }),
      ),
    write: ({ key, value, ifVersion }) =>
      sessions.use(async (session) => {
        if (value === undefined) throw new TypeError('No text is deleted from ZooKeeper.');
        const node = nodeOf(key);
        const data = Buffer.from(value);
        try {
          if (ifVersion === undefined) {
            const parent = node.slice(0, node.lastIndexOf('/'));
            await afterMaking(session, parent, () =>
              session.ask(() => session.port.create(node, data, 'persistent')),
            );
            return { status: 'written', version: 0 };
          }
          const written = await session.ask(() => session.port.write(node, data, Number(ifVersion)));
          return { status: 'written', version: written.version, now: written.writtenAt };
        } catch (error) {
          if (hasCode(error, 'NODE_EXISTS', 'BAD_VERSION')) return { status: 'conflict' };
          if (hasCode(error, 'NO_NODE')) return { status: 'conflict', present: 'absent' };
          throw error;
        }
      }),
    connectionError: () => sessions.connectionError(),
  };
}

/** The node of a key, whose last part is a name with `%` and `/` escaped: ZooKeeper refuses more characters than those. */
function nodeOf(key: string): string {
  const end = key.lastIndexOf('/') + 1;
  return key.slice(0, end) + encodeName(decodeURIComponent(key.slice(end)));
}

import { StoreLayout } from '@locks/core/backend';
import { hasCode } from './client-port.ts';
import { afterMaking } from './make-nodes.ts';
import { BESIDE_RESOURCES } from './node-names.ts';
import type { ZookeeperSession } from './zookeeper-session.ts';

/** The number of the layout of nodes and their data. A change that an older version would not understand raises it. */
const LAYOUT = 1;

/**
 * The marker of the layout under a path: the data of a node beside those of the resources.
 *
 * @param session - returns the live session; throws where there is none
 */
export function zookeeperLayout(root: string, session: () => ZookeeperSession): StoreLayout {
  const path = `${root}${BESIDE_RESOURCES}layout`;
  return new StoreLayout(LAYOUT, {
    what: `the locks under ${root}`,
    other: 'another path',
    reset: `delete the node ${path}`,
    async read() {
      const present = session();
      // A server may be behind: it would show no marker, or an old one.
      const [, node] = await Promise.all([present.barrier(), present.read(path)]);
      return node?.data.toString();
    },
    async create(layout) {
      const present = session();
      try {
        await afterMaking(present, root, () =>
          present.ask(() => present.port.create(path, Buffer.from(layout), 'persistent')),
        );
        return true;
      } catch (error) {
        if (hasCode(error, 'NODE_EXISTS')) return false;
        throw error;
      }
    },
  });
}

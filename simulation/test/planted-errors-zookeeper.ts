import type { PlantedError } from './planted-error.ts';

/** What stands in the file of `packages/zookeeper/src`; what takes its place; what goes wrong; the first schedule. */
type Change = readonly [from: string, to: string, what: string, seed?: number];

function errorsIn(file: string, ...changes: readonly Change[]): PlantedError[] {
  return changes.map(([from, to, what, seed = 1]) => ({
    backend: 'zookeeper',
    what,
    seed,
    change: { file: `zookeeper/src/${file}.ts`, from, to },
  }));
}

const TOGETHER =
  'this.#client\n        .transaction()\n        .create(by, data, this.#acl, MODES.ephemeral)\n        .remove(path)\n        .commit((error) => done(error));';

export const inZookeeper: readonly PlantedError[] = [
  ...errorsIn('session-validity', [
    'this.#validUntil = Math.min(\n      sentAt + this.#timeoutMs * PROVEN,\n      this.#reported + this.#timeoutMs * TRUSTED,\n    );',
    'this.#validUntil = sentAt + 2 * this.#timeoutMs;',
    'a session counts on more than its timeout',
    93,
  ]),
  ...errorsIn(
    'zookeeper-session',
    [
      'if (this.#proven && this.now() >= this.#validity.validUntil) return this.end();',
      '',
      'a session that was not proven in time comes back to life',
      642,
    ],
    ['if (this.connected) void this.#probe();', '', 'a session is proven by releases only', 78],
    ['    this.watches.end();\n', '', 'waiters do not hear of the end of their session', 9],
    [
      'else this.end();\n      },',
      'else void 0;\n      },',
      'a session without answers never ends for its waiters',
      6,
    ],
  ),
  ...errorsIn(
    'contender',
    [
      "this.#uncertain = hasCode(made.reason, 'CONNECTION_LOSS', 'SESSION_EXPIRED');",
      'this.#uncertain = false;',
      'a waiter enters the queue a second time behind an answer that was lost',
      3,
    ],
    [
      'this.#resourceNodes.unmade(this.parent);',
      '',
      'a resource whose node others have deleted cannot be locked',
      4,
    ],
    [
      "|| this.#uncertain || this.#share !== 'none';",
      '|| this.#uncertain;',
      'the share of a downgrade without an answer stays after the release',
      433,
    ],
    [
      'if (node !== undefined && holdsAlone(modeOf(node)) && this.granted && !isUnclear()) {',
      'if (node !== undefined && holdsAlone(modeOf(node)) && !isUnclear()) {',
      'whoever waits behind one who gave up enters at once',
      2,
    ],
  ),
  ...errorsIn(
    'node-client',
    [
      TOGETHER,
      'this.#client.remove(path, () => {});\n      this.#client.create(by, data, MODES.ephemeral, (error) => done(error));',
      'a hold ends before its share begins',
      16,
    ],
    [
      TOGETHER,
      'this.#client.create(by, data, MODES.ephemeral, () => {});\n      this.#client.remove(path, (error) => done(error));',
      'a share begins where the hold was ended by force',
      773_441_738,
    ],
  ),
  ...errorsIn(
    'zookeeper-queue',
    [
      'compareSequences(a.sequence, b.sequence) || ',
      '',
      'the queue has another order than that in which its waiters came',
      2,
    ],
    [
      "while (ahead >= 0 && this.nodes[ahead]?.kind !== 'x') ahead -= 1;",
      'ahead = -1;',
      'readers enter beside a writer',
      2,
    ],
  ),
  ...errorsIn('lock-node-creation', [
    'after.cversion === ((before.cversion + 1) | 0) ? after.pzxid : undefined',
    'after.pzxid',
    'a node gets the token of another that came with it',
    4,
  ]),
  ...errorsIn('node-changed', [
    'if ((await session.watches.add(path, changed)) === undefined) return true;',
    'await session.watches.add(path, changed);',
    'a waiter misses that the one ahead is gone already',
    9,
  ]),
];

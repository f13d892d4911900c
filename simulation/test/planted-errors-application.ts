import type { PlantedError } from './planted-error.ts';

/** What an application brings to light that uses the client of its locks for itself. */
export const errorsOfApplications: readonly PlantedError[] = [
  {
    backend: 'redis',
    what: 'a release that was only queued is believed',
    seed: 177,
    change: {
      file: 'redis-protocol/src/replies.ts',
      from: "{ status: 'not-held', handOffs: handOffsFrom(parts, 1) };\n    default:\n      throw new UnexpectedReplyError(reply);",
      to: "{ status: 'not-held', handOffs: handOffsFrom(parts, 1) };\n    default:\n      return RELEASED;",
    },
  },
  {
    backend: 'redis',
    what: 'the queued reply to an abandon in the background ends the process',
    seed: 1055,
    change: {
      file: 'redis-protocol/src/subscribed-waiters.ts',
      from: ".then(decodeRelease)\n      .then(\n        // No waiter's clock shows the sending time of this request.\n        ({ handOffs }) => this.handOff(handOffs, lock, undefined),",
      to: '.then(\n        (reply) => this.handOff(decodeRelease(reply).handOffs, lock, undefined),',
    },
  },
];

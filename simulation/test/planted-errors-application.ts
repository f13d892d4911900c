import type { PlantedError } from './planted-errors.ts';

/** What an application brings to light that uses the client of its locks for itself. */
export const errorsOfApplications: readonly PlantedError[] = [
  {
    backend: 'redis',
    what: 'a release that was only queued is believed',
    seed: 1,
    change: {
      file: 'redis-protocol/src/replies.ts',
      from: "{ status: 'not-held', handOffs: handOffsFrom(parts, 1) };\n    default:\n      throw new UnexpectedReplyError(reply);",
      to: "{ status: 'not-held', handOffs: handOffsFrom(parts, 1) };\n    default:\n      return RELEASED;",
    },
  },
  {
    backend: 'redis',
    what: "a release by the server's own command that was only queued is believed",
    seed: 1,
    change: {
      file: 'redis-protocol/src/native-release.ts',
      from: 'wholeIn(await this.#port.send(key, command)) === 1',
      to: '(await this.#port.send(key, command)) !== 0',
    },
  },
];

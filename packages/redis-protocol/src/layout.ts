import { StoreLayout } from '@locks/core/backend';
import type { RedisCommand, RedisPort } from './port.ts';
import { refuseQueued } from './reply-shape.ts';
import { wrongClient } from './retryable.ts';

/** The number of the layout of keys and values. A change that an older version would not understand raises it. */
const LAYOUT = 1;

/**
 * The marker of the layout under a prefix. Its key starts with the prefix, so that the rights for lock keys cover it, and has braces,
 * which no lock key has.
 *
 * @param prefix - the prefix of the client and of the locks
 */
export function redisLayout(port: RedisPort, prefix: string): StoreLayout {
  // Without a prefix, the key is named as the token keys are.
  const key = `${prefix || 'locks:'}{layout}`;
  const send = async (command: RedisCommand): Promise<unknown> => {
    try {
      const reply = await port.send(key, command);
      refuseQueued(reply);
      return reply;
    } catch (error) {
      // The server does not name the key that it refuses.
      if (error instanceof Error && error.message.includes('NOPERM'))
        error.message += ` Grant ${/key|access/.test(error.message) ? `~${key}` : `+${command[0].toLowerCase()}`}`;
      throw (!port.cluster && wrongClient(error)) || error;
    }
  };
  return new StoreLayout(LAYOUT, {
    what: `the locks ${prefix === '' ? 'without a prefix' : `with the prefix ${JSON.stringify(prefix)}`}`,
    other: 'another prefix',
    reset: `delete the key ${key}`,
    async read() {
      const value = await send(['GET', key]);
      return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
    },
    create: async (layout) => (await send(['SET', key, layout, 'NX'])) === 'OK',
  });
}

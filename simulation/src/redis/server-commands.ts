import type { CommandTable } from './command.ts';
import { SimulatedRedisError } from './reply.ts';

/** Commands that concern the server and its channels. */
export const serverCommands: CommandTable = {
  TIME: {
    least: 0,
    most: 0,
    run: ({ micros }) => [String(Math.floor(micros / 1_000_000)), String(micros % 1_000_000)],
  },
  PUBLISH: {
    least: 2,
    most: 2,
    run: (context, [channel = '', message = '']) => context.publish(channel, message),
  },
  PUBSUB: {
    least: 1,
    run: (context, [what = '', ...channels]) => {
      if (what.toUpperCase() !== 'NUMSUB') {
        throw new SimulatedRedisError(`ERR unknown subcommand '${what}'. Try PUBSUB HELP.`);
      }
      return channels.flatMap((channel) => [channel, context.listeners(channel)]);
    },
  },
};

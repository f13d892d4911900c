// `bench <suite> [options]`. A suite is a function of its arguments that gives the exit code.
import { redisSuite } from './suites/redis.ts';

const suites: Readonly<Record<string, (args: readonly string[]) => Promise<number>>> = {
  redis: redisSuite,
};

const [name = '', ...args] = process.argv.slice(2);
const suite = Object.hasOwn(suites, name) ? suites[name] : undefined;

if (suite === undefined) {
  console.error(
    `usage: bench <suite> [options]; suites: ${Object.keys(suites).join(', ')}; more with --help`,
  );
  process.exitCode = 2;
} else {
  process.exitCode = await suite(args);
}

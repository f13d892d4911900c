import { type ParseArgsConfig, parseArgs } from 'node:util';
import { nearest } from '@locks/core/backend';
import { UsageError } from './usage-error.ts';

export const USAGE = `usage: locks run NAME [options] -- COMMAND [ARGUMENT…]
       locks once NAME --slot day|hour|D --at-most D [options] -- COMMAND [ARGUMENT…]
       locks once NAME --reset [--wait D]
       locks ls [PREFIX] | show NAME | why NAME | watch [PREFIX] | release NAME --id ID [options]
       locks board [PREFIX] [options]
       locks prepare | doctor | prove [options]
       locks verify FILE… [options]

run        runs COMMAND while it holds the lock NAME, and exits as COMMAND does
  --wait D      how long to wait for the lock: 500ms, 5s, 2m, 1h; default: for ever
  --no-wait     do not wait
  --ttl D       how long the lock outlives this process; default: 30s
  --shared      hold it together with others who share it
  --permits N   hold one of N permits
  --label TEXT  what others see beside the lock; default: host:pid
once       runs COMMAND unless it was done in this slot, on any machine of the store; the store keeps a slot store of what was done
  --slot S      day, hour, or a duration: 5m; --time-zone Z and --starts-at HH:MM of a day; --offset D of the others
  --at-most D   how long a run may take: then COMMAND is ended; a machine that dies keeps the lock for so long
  --keep-alive  a run may take longer: the lock is renewed while it lasts, for --max-run D at most
  --at-least D  how long the lock is kept at least after a run; default: 0s
  --retry P     next-machine: a slot whose run failed is run again; next-slot: it is not; default: next-machine
  --wait D      how long to wait while another machine runs it; default: 0s
  --label TEXT  what the slot store and others see of this machine; default: host:pid
  --skip-code N the exit code where nothing is to be done; default: 0
  --verbose     say so; default: only in a terminal
  --reset       forget the recorded slot, once no run is under way: the next call runs COMMAND
ls         who holds and who waits, a line for each lock
show       who holds NAME and who waits for it
why        why NAME is not free: who holds it, what its holder waits for, who holds that, and so on
watch      ls, again and again; --every D, default: 1s
board      ls as a page for a browser, on this machine alone; --port N, --every D
  --allow-release  the page has a button that ends a hold, after a question; its address has a token then
  --host ADDRESS   listens there, for other machines; its address has a token then; default: 127.0.0.1
release    ends the hold of NAME that has the acquisition id ID; --everyone: all of them
  --yes         do not ask
prepare    makes what the store needs before the first lock (tables, a bucket): in a deployment, by a user who may
verify     holds the traces of all clients to the specification; exit code 1: a rule was broken
  --skew D      how far the clocks of several machines may be apart; default: 100ms
  --idle D      how long nobody may hold what somebody waits for; default: for ever
doctor     what about the store would break locks or slow them; exit code 1: something would break them

prove      shows whether the locks keep their promises while processes are killed, stand still and lose their connections
  --minutes N   for how long; default: 5
  --faults LIST kill,pause,long-pause,block,clock,cut,one-way,late,lost-reply; default: all
  --seed N      draws the same faults again
  --html FILE, --json FILE  the report as a page, and for programs
  --backend FILE  a module that opens other locks; it gets the URL

every command
  --url URL     redis[s]://…, redis[s]+sentinel://host[,host…]/master, postgres://…, mysql://…,
                etcd://host:port[,host:port…], zookeeper://host:port[,host:port…], sqlite:FILE, file:FOLDER,
                dynamodb://REGION/TABLE, s3://BUCKET[/PREFIX], nats://host[:port][/BUCKET], mongodb://host/DATABASE,
                kubernetes://[NAMESPACE]; default: LOCKS_URL, else files of this user on this machine alone,
                in locks/ of XDG_STATE_HOME, ~/.local/state, ~/Library/Application Support or %LOCALAPPDATA%
  --machine     files of all users of this machine, who all may write them, in /var/lib/locks,
                /Library/Application Support/locks or %PROGRAMDATA%\\locks
  --prefix TEXT what the store keeps the locks under: see the page of the backend
  --json        JSON, for programs: one object a line; not of run, once, prepare, board and prove
  --help, --version

exit codes of run: COMMAND's; 128 + n: COMMAND was ended by signal n; 64 usage; 69 the store cannot be reached;
70 the lease was lost; 75 the lock was not free in time; 126, 127 COMMAND cannot be run, is not found
of once: the same, and 71 a slot lies in the future; 75 of --reset alone; 1 an earlier run of the slot failed, and next-slot forbids another
of the others: 0; 1 release found nobody, doctor found an error, prove a broken promise, verify a violation; 64; 69; 74 the output cannot be written`;

const CONNECTION = {
  url: { type: 'string' },
  machine: { type: 'boolean', default: false },
  prefix: { type: 'string' },
  help: { type: 'boolean', default: false },
  version: { type: 'boolean', default: false },
} satisfies ParseArgsConfig['options'];
const STORE = {
  ...CONNECTION,
  json: { type: 'boolean', default: false },
} satisfies ParseArgsConfig['options'];

const OPTIONS = {
  run: {
    ...CONNECTION,
    wait: { type: 'string' },
    'no-wait': { type: 'boolean', default: false },
    ttl: { type: 'string' },
    shared: { type: 'boolean', default: false },
    permits: { type: 'string' },
    label: { type: 'string' },
  },
  once: {
    ...CONNECTION,
    slot: { type: 'string' },
    'time-zone': { type: 'string' },
    'starts-at': { type: 'string' },
    offset: { type: 'string' },
    'at-most': { type: 'string' },
    'keep-alive': { type: 'boolean', default: false },
    'max-run': { type: 'string' },
    'at-least': { type: 'string' },
    retry: { type: 'string' },
    wait: { type: 'string' },
    label: { type: 'string' },
    'skip-code': { type: 'string' },
    verbose: { type: 'boolean', default: false },
    reset: { type: 'boolean', default: false },
  },
  ls: STORE,
  show: STORE,
  why: STORE,
  watch: { ...STORE, every: { type: 'string' } },
  board: {
    ...CONNECTION,
    every: { type: 'string' },
    host: { type: 'string' },
    port: { type: 'string' },
    'allow-release': { type: 'boolean', default: false },
  },
  release: {
    ...STORE,
    id: { type: 'string' },
    everyone: { type: 'boolean', default: false },
    yes: { type: 'boolean', default: false },
  },
  prepare: CONNECTION,
  doctor: STORE,
  verify: {
    json: { type: 'boolean', default: false },
    skew: { type: 'string' },
    idle: { type: 'string' },
    help: { type: 'boolean', default: false },
    version: { type: 'boolean', default: false },
  },
  prove: {
    ...CONNECTION,
    minutes: { type: 'string' },
    faults: { type: 'string' },
    seed: { type: 'string' },
    html: { type: 'string' },
    json: { type: 'string' },
    backend: { type: 'string' },
  },
} satisfies Record<string, ParseArgsConfig['options']>;

const COMMANDS = Object.keys(OPTIONS).join(', ');

export type CommandName = keyof typeof OPTIONS;

/** The options that were given, by name; a flag that was not given is `false`. */
export type OptionValues = Readonly<Record<string, string | boolean | undefined>>;

export interface CommandLine {
  readonly command: CommandName;
  readonly values: OptionValues;
  /** The arguments before `--`, without the options. */
  readonly operands: readonly string[];
  /** The arguments after `--`. */
  readonly rest: readonly string[];
}

/** @throws UsageError */
export function readCommandLine(args: readonly string[]): CommandLine | 'help' | 'version' {
  const [command, ...others] = args;
  if (command === '--help' || command === 'help') return 'help';
  if (command === '--version') return 'version';
  if (command === undefined) throw new UsageError(`a command is missing: ${COMMANDS} exist`);
  if (!isCommand(command)) {
    const meant = nearest(command, Object.keys(OPTIONS));
    const hint = meant === undefined ? '' : ` did you mean ${meant}?`;
    throw new UsageError(`unknown command "${command}":${hint} ${COMMANDS} exist`);
  }
  const end = others.indexOf('--');
  const [own, rest] = end < 0 ? [others, []] : [others.slice(0, end), others.slice(end + 1)];
  const { values, positionals } = parse(own, OPTIONS[command]);
  if (values['help'] === true) return 'help';
  if (values['version'] === true) return 'version';
  return { command, values, operands: positionals, rest };
}

/** The value of an option that takes a text. */
export function textOf(values: OptionValues, option: string): string | undefined {
  const value = values[option];
  return typeof value === 'string' ? value : undefined;
}

function parse(
  args: readonly string[],
  options: NonNullable<ParseArgsConfig['options']>,
): { values: OptionValues; positionals: string[] } {
  try {
    const parsed = parseArgs({
      args: withJoinedId(args, options),
      options,
      allowPositionals: true,
      strict: true,
    });
    return { values: parsed.values as OptionValues, positionals: parsed.positionals };
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    const text = message.split('. To specify')[0] ?? message;
    if (code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') throw new UsageError(text);
    const names = Object.keys(options);
    const meant = nearest(/--([\w-]+)/.exec(text)?.[1] ?? '', names);
    throw new UsageError(
      meant === undefined
        ? `${text}: ${names.map((name) => `--${name}`).join(', ')} exist`
        : `${text}: did you mean --${meant}?`,
    );
  }
}

/** Joins `--id` and an id that begins with a dash: `parseArgs` takes such a value only after `=`. */
function withJoinedId(args: readonly string[], options: object): string[] {
  const joined: string[] = [];
  for (const arg of args) {
    const [name = ''] = arg.slice(2).split('=', 1);
    const isOption = arg.startsWith('--') && Object.hasOwn(options, name);
    if (joined.at(-1) === '--id' && arg.startsWith('-') && !isOption)
      joined[joined.length - 1] = `--id=${arg}`;
    else joined.push(arg);
  }
  return joined;
}

function isCommand(name: string): name is CommandName {
  return Object.hasOwn(OPTIONS, name);
}

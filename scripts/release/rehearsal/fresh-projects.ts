import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { must } from '../../checks/command.ts';
import { consumerManifest } from '../../checks/consumer-folder.ts';
import { writeFirstProgram } from '../../checks/first-steps.ts';
import { publishedPackages } from '../../checks/workspace.ts';
import { hostPath } from '../../launcher/environment.mjs';
import { root } from '../../launcher/root.mjs';
import type { Registry } from './registry.ts';
import { toolsFolder } from './registry.ts';

export const managers = ['npm', 'pnpm', 'yarn', 'yarn-pnp'] as const;
type Manager = (typeof managers)[number];

export interface FreshProject {
  readonly manager: Manager;
  readonly folder: string;
  /** What Node needs before the program: nothing, except where there is no `node_modules`. */
  readonly nodeArguments: readonly string[];
}

const caches = join(root, '.tools/release/caches');

/** An application in an empty folder that installs every package of the registry in this version. */
export async function freshProject(
  manager: Manager,
  registry: Registry,
  version: string,
  folder: string,
): Promise<FreshProject> {
  mkdirSync(folder, { recursive: true });
  for (const name of ['upgrade', 'runtimes'])
    cpSync(join(root, 'scripts/applications', name), join(folder, name), { recursive: true });
  for (const file of ['use.mjs', 'use.cjs']) cpSync(join(root, 'scripts/consumer', file), join(folder, file));
  writeFirstProgram(folder);
  // An earlier version may not have had all packages of today.
  const available = publishedPackages.filter((one) =>
    existsSync(registry.tarball(one.manifest.name, version)),
  );
  // Of the two clients of ZooKeeper none is required.
  const manifest = consumerManifest(() => version, available, { 'node-zookeeper-client': '^1.1.3' });
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(folder, '.npmrc'), `@locks:registry=${registry.url}\n`);
  // pnpm asks of its user which dependencies may run a script when they are installed; none of ours needs to.
  const builds = { allowBuilds: { protobufjs: false, 'msgpackr-extract': false } };
  if (manager === 'pnpm') writeFileSync(join(folder, 'pnpm-workspace.yaml'), JSON.stringify(builds));
  const env: NodeJS.ProcessEnv = { ...process.env, ...settings };
  if (manager === 'yarn' || manager === 'yarn-pnp') {
    const yarnrc = await yarnSettings(registry, manager === 'yarn' ? 'node-modules' : 'pnp');
    writeFileSync(join(folder, '.yarnrc.yml'), JSON.stringify(yarnrc));
    writeFileSync(join(folder, 'yarn.lock'), '');
  }
  const [command = '', ...args] = commands[manager];
  // npm runs on the host's Node, as it does for a user.
  const path = manager === 'npm' ? { PATH: hostPath() } : {};
  await must(command, args, { cwd: folder, env: { ...env, ...path } });
  const nodeArguments =
    manager === 'yarn-pnp' ? ['--require', './.pnp.cjs', '--loader', './.pnp.loader.mjs'] : [];
  return { manager, folder, nodeArguments };
}

const yarn = [process.execPath, join(toolsFolder, 'node_modules/@yarnpkg/cli-dist/bin/yarn.js'), 'install'];

const commands: Readonly<Record<Manager, readonly string[]>> = {
  npm: ['npm', 'install', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'],
  pnpm: ['pnpm', 'install', '--prefer-offline', '--reporter=append-only'],
  yarn,
  'yarn-pnp': yarn,
};

const settings = {
  npm_config_cache: join(caches, 'npm'),
  pnpm_config_store_dir: join(caches, 'pnpm'),
  // pnpm waits a while before it takes a new version: ours is seconds old.
  pnpm_config_minimum_release_age: '0',
  npm_config_minimum_release_age: '0',
  // An application has a lockfile only after its first installation, also in CI.
  pnpm_config_frozen_lockfile: 'false',
};

async function yarnSettings(registry: Registry, nodeLinker: string): Promise<object> {
  // Yarn does not read the settings of npm.
  const everythingElse = (await must('npm', ['config', 'get', 'registry'])).trim();
  return {
    nodeLinker,
    npmRegistryServer: everythingElse,
    npmScopes: { locks: { npmRegistryServer: registry.url } },
    unsafeHttpWhitelist: [registry.url, everythingElse].map((url) => new URL(url).hostname),
    // Yarn waits a while before it takes a new version: ours is seconds old.
    npmPreapprovedPackages: ['@locks/*'],
    globalFolder: join(caches, 'yarn'),
    enableTelemetry: false,
    enableImmutableInstalls: false,
    enableProgressBars: false,
  };
}

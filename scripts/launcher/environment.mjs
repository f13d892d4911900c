import { delimiter, join, sep } from 'node:path';
import { root } from './root.mjs';

// What `npm run` and `pnpm run` set for their scripts. Settings that point npm to other folders or describe another
// package must not reach the package managers that we start ourselves.
const fromPackageManager =
  /^(npm_(lifecycle|package|command|execpath|node_execpath)|INIT_CWD$|PNPM_SCRIPT_SRC_DIR$|npm_config_(local_prefix|global_prefix|prefix|user_agent|node_gyp|npm_version|noproxy|init_module|frozen_lockfile|verify_deps_before_run|dir)$)/;

/**
 * The environment of children: ours without the traces of the package manager that called us.
 * @returns {NodeJS.ProcessEnv}
 */
export function childEnvironment() {
  /** @type {NodeJS.ProcessEnv} */
  const env = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (!fromPackageManager.test(name)) env[name] = value;
  }
  const own = ['node_modules/.bin', '.tools/pnpm/node_modules/.bin'].map((folder) => join(root, folder));
  env['PATH'] = [...own, hostPath()].join(delimiter);
  env['TURBO_TELEMETRY_DISABLED'] = '1';
  env['TURBO_NO_UPDATE_NOTIFIER'] = '1';
  env['DO_NOT_TRACK'] = '1';
  // The packages are installed once, before anything runs; nested `pnpm run`s must not each check again.
  env['pnpm_config_verify_deps_before_run'] = 'false';
  // The tests and checks start hundreds of processes, which spend half of their time until they are ready on compiling.
  env['NODE_COMPILE_CACHE'] ??= join(root, '.tools/compile-cache');
  // For the checks that need the Node of the host as well as the workspace's.
  env['LOCKS_HOST_NODE'] = process.env['LOCKS_HOST_NODE'] ?? process.execPath;
  return env;
}

/** The PATH without what `npm run` and earlier launchers put first: this repository's own folders. */
export function hostPath() {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders
    .filter((folder) => !folder.startsWith(root + sep) && !folder.endsWith('node-gyp-bin'))
    .join(delimiter);
}

import { installDependencies } from './dependencies.mjs';
import { childEnvironment } from './environment.mjs';
import { workspaceNode } from './node-runtime.mjs';
import { bringPnpm } from './pnpm.mjs';

/**
 * Brings what every task needs: pnpm, the packages, the workspace's Node. Quick when all is there.
 * @returns {Promise<{ node: string, env: NodeJS.ProcessEnv }>}
 */
export async function prepare() {
  const pnpm = await bringPnpm();
  const env = childEnvironment(pnpm.folders);
  await installDependencies(pnpm.version, env);
  return { node: await workspaceNode(), env };
}

import { canFindServer, howToInstall } from '../find-server.mjs';

/** Says what is missing where a server of this kind was not fetched; node test-servers/install.mjs fetches it. */
export function assertFetched(kind: string): void {
  if (canFindServer(kind)) return;
  throw new Error(`No ${kind} here: run "node test-servers/install.mjs ${kind}". ${howToInstall(kind)}`);
}

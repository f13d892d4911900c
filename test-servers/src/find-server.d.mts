import type { FetchedServer } from './fetched-kinds.mjs';

export interface ServerKind extends FetchedServer {
  readonly binaries: string[];
  readonly apt?: string[];
  readonly brew?: string[];
  readonly urlVariable?: string;
  /** Of a kind that is built, its name in server-versions.mjs. */
  readonly version?: string;
}
export declare const serverKinds: Record<string, ServerKind>;
/** The directories to search, best first. `LOCKS_SERVER_PATH`, if set, replaces all of them. */
export declare function searchPath(env?: NodeJS.ProcessEnv): string[];
export declare function lookForServer(binary: string, directories?: readonly string[]): string | undefined;
export declare function serverKind(kind: string): ServerKind;
export declare function howToInstall(kind: string): string;
/** The path of a server's program; throws an error that says what to install or which variable to set. */
export declare function findServer(binary: string, directories?: readonly string[]): string;
/** Whether all programs of a kind are here. */
export declare function canFindServer(kind: string): boolean;

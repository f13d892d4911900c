/**
 * The folder with the programs of a version of a server, for `LOCKS_SERVER_PATH`; fetched by the first call.
 * @param name for example `valkey-9`; src/server-versions.mjs has all
 */
export declare function fetchVersion(name: string): string;

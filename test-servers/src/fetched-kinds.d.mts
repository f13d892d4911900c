export interface FetchedServer {
  readonly maven?: { readonly artifacts: readonly string[]; readonly sources?: readonly string[] };
  readonly pypi?: { readonly packages: readonly string[] };
}
/** The folder of a kind: with `jars` where Maven brings it, a virtual environment (`bin/python`) where PyPI does. */
export declare function fetchedFolder(kind: string): string;
export declare function isFetched(kind: string, wanted: FetchedServer): boolean;

// The library has no types of its own. Private: what users see is in node-client-types.ts.
declare module 'node-zookeeper-client' {
  const library: {
    createClient(
      servers: string,
      options: { sessionTimeout: number; spinDelay: number; retries: number },
    ): import('./node-client-types.ts').NodeZooKeeperClient;
  };
  export default library;
}

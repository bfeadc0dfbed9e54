// Preloaded into each service: when the start script is gone (kill -9, closed terminal), the service drains instead of staying behind.
process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));
// The channel alone must not keep a service alive that has nothing left to do.
process.channel?.unref();

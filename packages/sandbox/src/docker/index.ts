export { DockerSandboxes, type DockerSandboxesOptions } from './docker-sandboxes.ts';

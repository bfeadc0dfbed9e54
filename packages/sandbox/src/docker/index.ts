export { DockerSandboxes, type DockerSandboxesOptions } from './docker-sandbox.ts';

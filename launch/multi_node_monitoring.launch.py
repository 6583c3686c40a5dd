"""
Starts one edge-health process for each role of a robot: edge_brain, sensor_node, actuator_node.

A process that fails is restarted, unless the exit code shows that a restart would not help. The
launch ends when no process is left. With aggregator:=true, diagnostic_aggregator groups the
entries of /diagnostics as well.
"""

import os

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction, TimerAction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

ROLES = ('edge_brain', 'sensor_node', 'actuator_node')
# The same relative path in the checkout and in the installed package.
CONFIG_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'config')
# Wrong usage, program not installed, configuration invalid: a restart would not help.
FINAL_EXIT_CODES = (64, 69, 78)
RESTART_DELAY_SECONDS = 5.0
# Time to write the last samples to the disk.
SIGTERM_TIMEOUT_SECONDS = '15'


def default_data_folder():
    ros_home = os.environ.get('ROS_HOME') or os.path.join(os.path.expanduser('~'), '.ros')
    return os.path.join(ros_home, 'edge_health')


def role_node(role, config, data_folder, namespaced):
    def on_exit(event, context):
        if context.is_shutdown or event.returncode == 0:
            return None
        if event.returncode in FINAL_EXIT_CODES:
            return [LogInfo(msg=f'{role} is not restarted; its log shows what to change')]
        return [
            LogInfo(msg=f'{role} restarts in {RESTART_DELAY_SECONDS:g} s'),
            TimerAction(
                period=RESTART_DELAY_SECONDS,
                actions=[role_node(role, config, data_folder, namespaced)],
            ),
        ]

    return Node(
        package='edge_health',
        executable='edge_health_node',
        exec_name=role,
        namespace=role if namespaced else None,
        arguments=['--config', config],
        cwd=data_folder,
        # As systemd sets them: the base of relative paths, and no shared runtime folder.
        additional_env={'STATE_DIRECTORY': data_folder, 'RUNTIME_DIRECTORY': ''},
        output='screen',
        # With a terminal, the log is human-readable and has no journal priorities.
        emulate_tty=True,
        sigterm_timeout=SIGTERM_TIMEOUT_SECONDS,
        on_exit=on_exit,
    )


def aggregator_node():
    viewers = PathJoinSubstitution([FindPackageShare('edge_health'), 'viewers'])
    return Node(
        package='diagnostic_aggregator',
        executable='aggregator_node',
        parameters=[PathJoinSubstitution([viewers, 'diagnostic_aggregator.yaml'])],
        output='screen',
    )


def start(context):
    def value(name):
        return LaunchConfiguration(name).perform(context)

    def path(name):
        return os.path.abspath(os.path.expanduser(value(name)))

    chosen = [role for role in value('nodes').replace(' ', '').split(',') if role]
    unknown = [role for role in chosen if role not in ROLES]
    if unknown or not chosen:
        allowed = f"one or more of {', '.join(ROLES)}, separated by commas"
        raise RuntimeError(f"nodes is '{value('nodes')}'; allowed: {allowed}")
    data_folder = path('data_folder')
    os.makedirs(data_folder, exist_ok=True)
    namespaced = value('namespaces').lower() == 'true'
    roles = [
        role_node(role, path(f'{role}_config'), data_folder, namespaced)
        for role in ROLES
        if role in chosen
    ]
    # First: if its package is missing, the launch fails before a role has started.
    return [aggregator_node(), *roles] if value('aggregator').lower() == 'true' else roles


def generate_launch_description():
    configs = [
        DeclareLaunchArgument(
            f'{role}_config',
            default_value=os.path.join(CONFIG_FOLDER, f'{role}_config.yaml'),
            description=f'Configuration file of {role}.',
        )
        for role in ROLES
    ]
    return LaunchDescription(
        [
            *configs,
            DeclareLaunchArgument(
                'nodes',
                default_value=','.join(ROLES),
                description='The roles to start, separated by commas.',
            ),
            DeclareLaunchArgument(
                'namespaces',
                default_value='false',
                choices=['true', 'false'],
                description='Whether each role has a namespace: /sensor_node/health_status.',
            ),
            DeclareLaunchArgument(
                'data_folder',
                default_value=default_data_folder(),
                description='Working directory; a relative storage.path is below it.',
            ),
            DeclareLaunchArgument(
                'aggregator',
                default_value='false',
                choices=['true', 'false'],
                description='Whether diagnostic_aggregator publishes /diagnostics_agg.',
            ),
            OpaqueFunction(function=start),
        ]
    )
